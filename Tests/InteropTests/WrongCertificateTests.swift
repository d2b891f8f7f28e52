import BroadsideTestSupport
import Foundation
import Testing

/// Certificates that are wrong in each way: nobody is talked to, and the reason is named.
@Suite(.timeLimit(.minutes(60)))
struct WrongCertificateTests {
    /// What is wrong with a certificate, and what is said of it.
    enum Fault: String, CaseIterable {
        case selfSigned = "not trusted here (CN=leaf)"
        case clientsOnly = "purpose"
        case byALeaf = "invalid CA"
        case notYetValid = "valid only from 2090-01-01T00:00:00Z"
        case missingLink = "not trusted here (CN=middle)"
        case noNames = "for no name at all"
    }

    @Test(arguments: Fault.allCases)
    func `A server certificate with each fault is refused`(fault: Fault) throws {
        let maker = try CertificateMaker()
        let server = try RecordingServer(identity: make(fault, maker))
        let campaign = try Campaign(rows: 10)
        let sent = try campaign.send(to: server.endpoint, ["--summary", "-"])
        #expect(sent.exitCode == 1, "\(sent.errors)")
        #expect(sent.errorLines.count == 1, "\(sent.errors)")
        #expect(sent.errors.contains("certificate"), "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.outcome == "error" && summary.remaining == 10)
        #expect(try server.answers().isEmpty)
        #expect(sent.errors.contains(fault.rawValue), "\(sent.errors)")
        withExtendedLifetime(maker) {}
    }

    private func make(_ fault: Fault, _ maker: CertificateMaker) throws -> ServerIdentity {
        switch fault {
        case .selfSigned: return try maker.leaf("leaf", signer: nil)
        case .clientsOnly:
            return try maker.leaf("leaf", extensions: ["extendedKeyUsage=clientAuth"])
        case .byALeaf:
            let other = try maker.leaf("other")
            return try maker.leaf("leaf", signer: other, sendsSigner: true)
        case .missingLink:
            let middle = try maker.leaf(
                "middle",
                extensions: ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"])
            return try maker.leaf("leaf", signer: middle)
        case .notYetValid: return try maker.leaf("leaf", start: "20900101000000Z")
        case .noNames: return try maker.leaf("leaf", names: nil)
        }
    }
}

/// Makes certificates with the openssl command, signed by the authority that tests trust.
struct CertificateMaker {
    let directory: TemporaryDirectory
    let authority: ServerIdentity

    init() throws {
        directory = try TemporaryDirectory()
        let shared = try TestAuthority.shared()
        let path = shared.directory.path
        authority = ServerIdentity(
            certificate: shared.caFile, key: "\(path)/authority.key")
    }

    /// A certificate for localhost.
    ///
    /// - Parameters:
    ///   - signer: Nil: itself.
    ///   - sendsSigner: The server shows the signer's certificate as well.
    func leaf(
        _ name: String, signer: ServerIdentity?, names: String? = "DNS:localhost,IP:127.0.0.1",
        extensions: [String] = [], start: String = "20200101000000Z", sendsSigner: Bool = false
    ) throws -> ServerIdentity {
        let path = "\(directory.path)/\(name)"
        try Subprocess.run(
            "openssl",
            [
                "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                "\(path).key",
            ], in: directory)
        try Subprocess.run(
            "openssl",
            ["req", "-new", "-key", "\(path).key", "-subj", "/CN=\(name)", "-out", "\(path).csr"],
            in: directory)
        let more = extensions + (names.map { ["subjectAltName=\($0)"] } ?? [])
        try directory.write(
            """
            [ca]
            default_ca = own
            [own]
            new_certs_dir = \(directory.path)
            database = \(path).database
            rand_serial = yes
            default_md = sha256
            policy = any
            x509_extensions = more
            [any]
            commonName = supplied
            [more]
            \((more.isEmpty ? ["subjectKeyIdentifier=hash"] : more).joined(separator: "\n"))
            """, to: "\(name).cnf")
        try directory.write("", to: "\(name).database")
        let by =
            signer.map { ["-cert", $0.certificate, "-keyfile", $0.key] }
            ?? ["-selfsign", "-keyfile", "\(path).key"]
        try Subprocess.run(
            "openssl",
            [
                "ca", "-batch", "-notext", "-config", "\(path).cnf", "-in", "\(path).csr", "-out",
                "\(path).pem", "-startdate", start, "-enddate", "20991231000000Z",
            ] + by, in: directory)
        if sendsSigner, let signer {
            let chain = try [path + ".pem", signer.certificate].map {
                try String(contentsOfFile: $0, encoding: .utf8)
            }
            try directory.write(chain.joined(), to: "\(name).pem")
        }
        return ServerIdentity(certificate: "\(path).pem", key: "\(path).key")
    }

    /// The same, by the authority that tests trust.
    func leaf(
        _ name: String, names: String? = "DNS:localhost,IP:127.0.0.1", extensions: [String] = [],
        start: String = "20200101000000Z"
    ) throws -> ServerIdentity {
        try leaf(
            name, signer: authority, names: names, extensions: extensions, start: start)
    }
}
