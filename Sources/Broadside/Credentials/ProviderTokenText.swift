import BroadsideEngine
import BroadsideSupport

/// A provider token as a text, for a program that takes it in a header.
package enum ProviderTokenText {
    /// The value of `authorization` now, for a signing key.
    ///
    /// - Parameters:
    ///   - key: The path of the key (.p8).
    ///   - keyID: Of the key.
    ///   - teamID: Its owner's.
    /// - Throws: Where the key can't be read, or does not sign.
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
