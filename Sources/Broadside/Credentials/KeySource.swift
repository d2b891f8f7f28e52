import BroadsideSupport
import BroadsideTLS
internal import Synchronization

/// Where a signing key comes from.
enum KeySource: Equatable, Sendable {
    case file(String)
    /// A variable of the environment holds the key's text.
    case environment(String)
    /// It stays in a PKCS#11 token; a URI (RFC 7512) says which.
    case token(TokenURI)
    /// A command prints it.
    case command(String)

    /// What a value of `--auth-key` begins with that names no file.
    static let prefixes = [environmentPrefix, TokenURI.prefix]
    private static let environmentPrefix = "env:"

    /// What the options say; nil: they name no key.
    init?(_ options: SendOptions) {
        if let command = options.authKeyCommand {
            self = .command(command)
        } else if let value = options.authKey {
            self.init(value)
        } else {
            return nil
        }
    }

    /// What a value of `--auth-key` says.
    init(_ value: String) {
        if value.starts(withBytes: TokenURI.prefix) {
            self = .token(TokenURI(value))
        } else if value.starts(withBytes: Self.environmentPrefix) {
            self = .environment(String(value.dropFirst(Self.environmentPrefix.count)))
        } else {
            self = .file(value)
        }
    }

    /// The option that names it.
    var option: String {
        if case .command = self { return "auth-key-command" }
        return "auth-key"
    }

    /// The file, where it is one.
    var path: String? {
        if case .file(let path) = self { return path }
        return nil
    }

    /// Refuses what can't be a source, and shows nothing of what may be a secret.
    func check() throws(BroadsideError) {
        switch self {
        case .file: break
        case .environment(let name):
            guard EnvironmentSecret.isName(name) else {
                throw .usage(
                    option,
                    "env: needs the name of an environment variable behind it (what was given is not shown, "
                        + "it may be the key itself): write --auth-key env:NAME, without '$'")
            }
        case .token(let uri): try uri.check(option: option)
        case .command(let command): try SecretCommand.check(command, option: option)
        }
    }
}

extension SendOptions {
    /// What a value of `--auth-key` begins with that names no file.
    package static var keyPrefixes: [String] { KeySource.prefixes }

    /// Refuses a value of `--auth-key` that can't be a source; nothing is read.
    package static func checkKey(_ value: String) throws(BroadsideError) {
        try KeySource(value).check()
    }

    /// Refuses a secret, or nothing, where a command is meant; nothing is run.
    package static func checkSecretCommand(
        _ command: String, option: String
    ) throws(BroadsideError) {
        try SecretCommand.check(command, option: option)
    }
}

/// Keys that are read once per process: their source has nothing to read them from again.
enum HeldKeys {
    private static let keys = Mutex<[String: SigningKey]>([:])
    /// Sources of one process: a program that uses the library may have several.
    private static let countMax = 64

    /// The key of a source; it is read where that was not done before.
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
