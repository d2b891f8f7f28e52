import BroadsideCampaigns
internal import BroadsideSupport
import BroadsideTLS
public import FoundationEssentials

/// Credential of the sender. Its descriptions contain no secret.
public enum APNsCredential: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// Text of the `.p8` key from Apple, with the identifiers of the key and of the team.
    case key(pem: String, keyID: String, teamID: String)
    /// File of a `.p8` key, or of a key in another form that `--auth-key` accepts.
    case keyFile(URL, keyID: String, teamID: String)
    /// File of a provider token that another program replaces before it expires.
    case providerTokenFile(URL)
    /// File of a client certificate: PEM or PKCS#12.
    case certificate(URL, privateKey: URL? = nil, passphraseFile: URL? = nil)

    /// Name of the credential's kind, without secrets.
    public var description: String {
        switch self {
        case .key(_, let keyID, let teamID): "key \(keyID) of team \(teamID)"
        case .keyFile(let file, let keyID, let teamID):
            "key \(keyID) of team \(teamID) in \(path(file))"
        case .providerTokenFile(let file): "provider token in \(path(file))"
        case .certificate(let file, _, _): "certificate in \(path(file))"
        }
    }

    /// The same text as `description`.
    public var debugDescription: String { description }

    func apply(to options: inout SendOptions) throws(BroadsideError) {
        switch self {
        case .key(let pem, let keyID, let teamID):
            do {
                options.heldKey = try SigningKey(pem: Array(pem.utf8))
            } catch {
                throw .usage(
                    "auth-key", "contains no usable key: pass the text of Apple's .p8 file")
            }
            (options.keyID, options.teamID) = (keyID, teamID)
        case .keyFile(let file, let keyID, let teamID):
            options.authKey = try path(file, of: "auth-key")
            (options.keyID, options.teamID) = (keyID, teamID)
        case .providerTokenFile(let file):
            options.authTokenFile = try path(file, of: "auth-token-file")
        case .certificate(let file, let privateKey, let passphraseFile):
            options.certificate = try path(file, of: "certificate")
            options.privateKey = try optionalPath(privateKey, of: "private-key")
            options.passphraseFile = try optionalPath(passphraseFile, of: "passphrase-file")
        }
    }
}

/// Path of a file, for descriptions.
private func path(_ file: URL) -> String { file.path(percentEncoded: false) }

/// Path of the file that an option names.
///
/// - Throws: If the URL names no file.
func path(_ file: URL, of option: String) throws(BroadsideError) -> String {
    guard file.isFileURL || file.scheme == nil else {
        throw .usage(option, "'\(file.absoluteString)' is not the URL of a file: pass one")
    }
    return path(file)
}

/// Path of the file that an option names; nil if it names none.
func optionalPath(_ file: URL?, of option: String) throws(BroadsideError) -> String? {
    guard let file else { return nil }
    return try path(file, of: option)
}
