import APNs
import Broadside

/// The options that say who connects and where to: the same in every command that connects.
enum CredentialOptions {
    static let credentials = OptionSection(
        title: "Credentials, one of the kinds",
        options: [
            .init("auth-key", "FILE", "signing key (.p8) for provider tokens"),
            .init("key-id", "ID", "the key's ID, 10 characters"),
            .init("team-id", "ID", "the team's ID, 10 characters"),
            .init(
                "auth-token-file", "FILE",
                "a provider token made elsewhere, reread when it changes"),
            .init(
                "certificate", "FILE",
                "client certificate: PEM, with or without its key, or PKCS#12"),
            .init("private-key", "FILE", "the certificate's key, PEM, where it has its own file"),
            .init("passphrase-file", "FILE", "the first line opens a protected key or PKCS#12"),
        ])

    static let endpoint = OptionSection(
        title: "Where to",
        options: [
            .init("environment", "NAME", "production or development (default: production)"),
            .init("port", "443|2197", "port of Apple's hosts (default: 443)"),
            .init(
                "endpoint", "HOST[:PORT]",
                "another server than Apple's: a simulator, a test bench, a relay"),
            .init("ca-file", "FILE", "certificates to trust there (default: the system's)"),
            .init(
                "content-length", nil,
                "send this header with each request, for relays that insist on it (status 411)"),
            .init("proxy", "URL", "HTTP proxy to go through: http://HOST:PORT"),
            .init(
                "proxy-auth-file", "FILE", "the first line is user:password for the proxy"),
        ])

    /// Reads both groups.
    static func read(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        options.authKey = arguments.string("auth-key")
        options.keyID = arguments.string("key-id")
        options.teamID = arguments.string("team-id")
        options.authTokenFile = arguments.string("auth-token-file")
        options.certificate = arguments.string("certificate")
        options.privateKey = arguments.string("private-key")
        options.passphraseFile = arguments.string("passphrase-file")
        // Apple's older words, and the short ones.
        let meant = ["sandbox": "development", "dev": "development", "prod": "production"]
        if let text = arguments.string("environment"), let name = meant[text.lowercased()] {
            throw .usage("--environment '\(text)' is unknown: did you mean \(name)?")
        }
        if let environment = try arguments.choice("environment", Endpoints.Environment.self) {
            options.environment = environment
        }
        if let port = try arguments.integer("port", in: 1...65_535) {
            guard port == 443 || port == 2197 else {
                throw .usage("--port \(port) is not one of Apple's: use 443 or 2197, or --endpoint")
            }
            options.port = UInt16(port)
        }
        options.endpoint = arguments.string("endpoint")
        options.caFile = arguments.string("ca-file")
        options.sendsContentLength = arguments.has("content-length")
        options.proxy = arguments.string("proxy")
        options.proxyAuthFile = arguments.string("proxy-auth-file")
    }
}
