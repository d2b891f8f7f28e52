import BroadsideEngine
import BroadsideSupport

/// A provider token as text, for programs that send it in a header.
package enum ProviderTokenText {
    /// Returns the current value of `authorization` for a signing key.
    ///
    /// - Parameters:
    ///   - key: Path of the key (.p8).
    ///   - keyID: ID of the key.
    ///   - teamID: ID of the key's team.
    /// - Throws: If the key can't be read or can't sign.
    package static func authorization(
        key: String, keyID: String, teamID: String
    ) throws(BroadsideError) -> String {
        var options = SendOptions()
        options.authKey = key
        options.keyID = keyID
        options.teamID = teamID
        var warnings: [String] = []
        let value = try Credential.read(options, warnings: &warnings)
            .authorization(nowSeconds: Clock.now().wallMilliseconds / 1000).value
        return String(decoding: value ?? [], as: UTF8.self)
    }
}
