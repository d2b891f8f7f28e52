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

/// Certificates and keys that all tests share, made with the openssl command.
package final class TestAuthority: Sendable {
    package let directory: TemporaryDirectory
    /// The certificate that tests trust.
    package let caFile: String
    /// One that signed nothing here.
    package let otherCAFile: String
    /// Valid for localhost, 127.0.0.1 and ::1.
    package let localhost: ServerIdentity
    /// Valid for push.example alone.
    package let otherName: ServerIdentity
    /// Ended yesterday.
    package let expired: ServerIdentity
    /// A signing key as Apple gives them.
    package let authKey: String
    package let authPublicKey: String

    private static let made = Result { try TestAuthority() }

    /// The one of this process.
    package static func shared() throws -> TestAuthority { try made.get() }

    private init() throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        let path = directory.path
        func openssl(_ line: String) throws {
            try Subprocess.run(
                "openssl", line.split(separator: " ").map(String.init), in: directory)
        }
        func makeKey(_ name: String, _ curve: String = "P-256") throws -> String {
            let file = "\(path)/\(name).key"
            try openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:\(curve) -out \(file)")
            return file
        }
        func makeAuthority(_ name: String) throws -> String {
            let key = try makeKey(name)
            try openssl(
                "req -x509 -new -key \(key) -subj /CN=\(name) -days 60 -out \(path)/\(name).pem "
                    + "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign")
            return "\(path)/\(name).pem"
        }
        func makeServer(_ name: String, _ names: String, days: Int) throws -> ServerIdentity {
            let key = try makeKey(name)
            let request = "\(path)/\(name).csr"
            let certificate = "\(path)/\(name).pem"
            try openssl(
                "req -new -key \(key) -subj /CN=\(name) -addext subjectAltName=\(names) "
                    + "-out \(request)")
            try openssl(
                "x509 -req -in \(request) -CA \(path)/authority.pem -CAkey \(path)/authority.key "
                    + "-days \(days) -copy_extensions copy -out \(certificate)")
            return ServerIdentity(certificate: certificate, key: key)
        }
        caFile = try makeAuthority("authority")
        otherCAFile = try makeAuthority("stranger")
        let names = "DNS:localhost,IP:127.0.0.1,IP:::1"
        // Long enough for thirty nights on a simulated clock.
        localhost = try makeServer("localhost", names, days: 60)
        otherName = try makeServer("othername", "DNS:push.example", days: 30)
        expired = try makeServer("expired", names, days: -1)
        authKey = try makeKey("AuthKey")
        authPublicKey = "\(path)/AuthKey.pub"
        try openssl("pkey -in \(authKey) -pubout -out \(authPublicKey)")

        // Nobody else would: the shared instance lives as long as the process.
        TestAuthority.pathToRemove = path
        atexit { try? FileManager.default.removeItem(atPath: TestAuthority.pathToRemove) }
    }

    nonisolated(unsafe) private static var pathToRemove = ""
}
