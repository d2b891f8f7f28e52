import BroadsideSupport
import BroadsideTLS
internal import Synchronization

/// Source of a signing key.
enum KeySource: Equatable, Sendable {
    case file(String)
    /// Environment variable that contains the key's text.
    case environment(String)
    /// Key in a PKCS#11 token, identified by a URI (RFC 7512).
    case token(TokenURI)
    /// Command that prints the key.
    case command(String)

    /// The prefixes of `--auth-key` values that are not file names.
    static let prefixes = [environmentPrefix, TokenURI.prefix]
    private static let environmentPrefix = "env:"

    /// Reads the source from the options; nil if they name no key.
    init?(_ options: SendOptions) {
        if let command = options.authKeyCommand {
            self = .command(command)
        } else if let value = options.authKey {
            self.init(value)
        } else {
            return nil
        }
    }

    /// Parses a value of `--auth-key`.
    init(_ value: String) {
        if value.starts(withBytes: TokenURI.prefix) {
            self = .token(TokenURI(value))
        } else if value.starts(withBytes: Self.environmentPrefix) {
            self = .environment(String(value.dropFirst(Self.environmentPrefix.count)))
        } else {
            self = .file(value)
        }
    }

    /// Option that names the source.
    var option: String {
        if case .command = self { return "auth-key-command" }
        return "auth-key"
    }

    /// Path of a file; nil for other sources.
    var path: String? {
        if case .file(let path) = self { return path }
        return nil
    }

    /// Refuses an invalid source, without showing a text that may be a secret.
    func check() throws(BroadsideError) {
        switch self {
        case .file: break
        case .environment(let name):
            guard EnvironmentSecret.isName(name) else {
                throw .usage(
                    option,
                    "env: must be followed by the name of an environment variable: "
                        + "write --auth-key env:NAME, without '$' (the value is not shown, "
                        + "because it may be the key itself)")
            }
        case .token(let uri): try uri.check(option: option)
        case .command(let command): try SecretCommand.check(command, option: option)
        }
    }
}

extension SendOptions {
    /// The prefixes of `--auth-key` values that are not file names.
    package static var keyPrefixes: [String] { KeySource.prefixes }

    /// Refuses an invalid value of `--auth-key` without reading anything.
    package static func checkKey(_ value: String) throws(BroadsideError) {
        try KeySource(value).check()
    }

    /// Refuses a command that is empty or contains a secret. Runs nothing.
    package static func checkSecretCommand(
        _ command: String, option: String
    ) throws(BroadsideError) {
        try SecretCommand.check(command, option: option)
    }
}

/// The keys that are read once per process because their source can't be read again.
enum HeldKeys {
    private static let keys = Mutex<[String: SigningKey]>([:])
    /// Maximum number of keys that are kept. A program that uses the library may have several.
    private static let countMax = 64

    /// Returns the key of a source. Reads the source on first use.
    static func key(
        _ source: String, _ read: () throws(BroadsideError) -> SigningKey
    ) throws(BroadsideError) -> SigningKey {
        if let key = keys.withLock({ $0[source] }) { return key }
        let key = try read()
        keys.withLock { keys in
            if keys.count >= countMax { keys = [:] }
            keys[source] = key
            assert(keys.count <= countMax, "the table is bounded")
        }
        return key
    }
}
