import Foundation

/// A server's certificate and key.
package struct ServerIdentity: Sendable {
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// Certificates and keys that all tests share, made with the openssl command. Those that few tests need are made when
/// one asks for them.
package final class TestAuthority: Sendable {
    package let directory: TemporaryDirectory
    /// The certificate that tests trust.
    package let caFile: String
    /// Valid for localhost, 127.0.0.1 and ::1.
    package let localhost: ServerIdentity
    /// A signing key as Apple gives them.
    package let authKey: String
    package let authPublicKey: String

    private static let made = Result { try TestAuthority() }
    private static let stranger = Result { try shared().makeAuthority("stranger") }
    private static let named = Result {
        try shared().makeServer("othername", "DNS:push.example", days: 30)
    }
    private static let old = Result { try shared().makeExpired() }
    private static let localNames = "DNS:localhost,IP:127.0.0.1,IP:::1"

    /// The one of this process.
    package static func shared() throws -> TestAuthority { try made.get() }

    /// The certificate of an authority that signed nothing here.
    package var otherCAFile: String { get throws { try Self.stranger.get() } }
    /// Valid for push.example alone.
    package var otherName: ServerIdentity { get throws { try Self.named.get() } }
    /// Ended yesterday.
    package var expired: ServerIdentity { get throws { try Self.old.get() } }

    private init() throws {
        directory = try TemporaryDirectory()
        let path = directory.path
        caFile = "\(path)/authority.pem"
        localhost = ServerIdentity(
            certificate: "\(path)/localhost.pem", key: "\(path)/localhost.key")
        authKey = "\(path)/AuthKey.key"
        authPublicKey = "\(path)/AuthKey.pub"
        _ = try makeAuthority("authority")
        // Long enough for thirty nights on a simulated clock.
        _ = try makeServer("localhost", Self.localNames, days: 60)
        try openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out \(authKey)")
        try openssl("pkey -in \(authKey) -pubout -out \(authPublicKey)")

        // Nobody else would: the shared instance lives as long as the process.
        TestAuthority.pathToRemove = path
        atexit { try? FileManager.default.removeItem(atPath: TestAuthority.pathToRemove) }
    }

    private func openssl(_ line: String) throws {
        try Subprocess.run("openssl", line.split(separator: " ").map(String.init), in: directory)
    }

    private func file(_ name: String) -> String { "\(directory.path)/\(name)" }

    /// The words that make a key and something for it.
    private func request(_ name: String, _ output: String) -> String {
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=\(name) "
            + "-keyout \(file("\(name).key")) -out \(file(output))"
    }

    /// The words that name the authority of tests.
    private var signer: String { "-CA \(caFile) -CAkey \(file("authority.key"))" }

    private func identity(_ name: String) -> ServerIdentity {
        ServerIdentity(certificate: file("\(name).pem"), key: file("\(name).key"))
    }

    private func makeAuthority(_ name: String) throws -> String {
        try openssl(
            request(name, "\(name).pem") + " -x509 -days 60 "
                + "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign")
        return file("\(name).pem")
    }

    private func makeServer(_ name: String, _ names: String, days: Int) throws -> ServerIdentity {
        try openssl(
            request(name, "\(name).pem") + " -x509 -days \(days) \(signer) "
                + "-addext subjectAltName=\(names) -addext basicConstraints=CA:FALSE")
        return identity(name)
    }

    /// A certificate for localhost that ended yesterday: only `openssl x509` makes one.
    private func makeExpired() throws -> ServerIdentity {
        try openssl(
            request("expired", "expired.csr") + " -addext subjectAltName=\(Self.localNames)")
        try openssl(
            "x509 -req -in \(file("expired.csr")) \(signer) -days -1 -copy_extensions copy "
                + "-out \(file("expired.pem"))")
        return identity("expired")
    }

    nonisolated(unsafe) private static var pathToRemove = ""
}
