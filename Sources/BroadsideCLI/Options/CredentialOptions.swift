import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// Options for credentials and server, shared by all commands that connect.
enum CredentialOptions {
    static let credentials = OptionGroup<SendOptions>(
        title: "Credentials (one kind)",
        options: [
            .custom(
                "auth-key", .fileUnless(SendOptions.keyPrefixes), "FILE|env:NAME|pkcs11:URI",
                "signing key (.p8) for provider tokens, with --key-id and --team-id; env:NAME: an environment variable that holds the key's text; pkcs11:URI: a key in a PKCS#11 token"
            ) { (text, options) throws(BroadsideError) in
                try SendOptions.checkKey(text)
                options.authKey = text
            },
            .custom(
                "auth-key-command", .text, "COMMAND",
                "shell command that prints the key within 30 s; run again after SIGHUP"
            ) { (text, options) throws(BroadsideError) in
                try SendOptions.checkSecretCommand(text, option: "auth-key-command")
                options.authKeyCommand = text
            },
            .text("key-id", "ID", \.keyID, "the key's ID, 10 characters"),
            .text("team-id", "ID", \.teamID, "the team's ID, 10 characters"),
            .file(
                "auth-token-file", \.authTokenFile,
                "file with a provider token from another program, reread when it changes"),
            .custom(
                "auth-token-command", .text, "COMMAND",
                "shell command that prints a provider token within 30 s; run again when the token is 50 minutes old, or expired"
            ) { (text, options) throws(BroadsideError) in
                try SendOptions.checkSecretCommand(text, option: "auth-token-command")
                options.authTokenCommand = text
            },
            .file(
                "certificate", \.certificate,
                "client certificate: PEM, with or without its key, DER (.cer) or PKCS#12"),
            .file(
                "private-key", \.privateKey,
                "the certificate's key, if it is in a separate file"),
            .file(
                "passphrase-file", \.passphraseFile,
                "file whose first line is the passphrase of the key or PKCS#12 file"),
        ])

    static let endpoint = OptionGroup<SendOptions>(
        title: "Where to",
        options: [
            environment,
            port,
            .text(
                "endpoint", "HOST[:PORT]", \.endpoint,
                "a server other than Apple's: a simulator, a test bench, a relay"),
            .file("ca-file", \.caFile, "certificates to trust (default: the system's)"),
            .flag(
                "content-length", \.sendsContentLength,
                "send this header with each request, for relays that require it (status 411)"),
            .text("proxy", "URL", \.proxy, "HTTP proxy to go through: http://HOST:PORT"),
            .file(
                "proxy-auth-file", \.proxyAuthFile,
                "file whose first line is user:password for the proxy"),
        ])

    private static let port = Option<SendOptions>(
        OptionDescription(
            "port", .choice(["443", "2197"]), "443|2197",
            "port of Apple's hosts, and of an endpoint without a port (default: \(Endpoints.defaultPort))"
        )
    ) { (arguments, options) throws(BroadsideError) in
        guard let text = arguments.string("port") else { return }
        guard let port = UInt16(text), Endpoints.ports.contains(port) else {
            throw .usage(
                "port",
                "'\(text)' is not a port of Apple's hosts: use 443 or 2197, or "
                    + "--endpoint HOST:PORT")
        }
        options.port = port
    }

    private static let environment = Option<SendOptions>(
        OptionDescription(
            "environment", .choice(Endpoints.Environment.allCases.map(\.rawValue)), "NAME",
            "production, or development, which is Apple's sandbox (default: "
                + "\(SendOptions.defaults.environment.rawValue))")
    ) { (arguments, options) throws(BroadsideError) in
        if arguments.string("environment") == "sandbox" {
            options.environment = .development
            return
        }
        let meant = [
            "sandbox": "development", "dev": "development", "prod": "production",
            "live": "production",
        ]
        if let text = arguments.string("environment"), let name = meant[text.lowercased()] {
            throw .usage("environment", "'\(text)' is unknown: did you mean \(name)?")
        }
        if let value = try arguments.choice("environment", Endpoints.Environment.self) {
            options.environment = value
        }
    }
}
