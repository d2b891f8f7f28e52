import Foundation

extension TestAuthority {
    /// A provider certificate, signed by the authority that tests trust.
    ///
    /// - Parameters:
    ///   - topics: Of the topics extension; empty: without the extension.
    ///   - environments: `1` development, `2` production: the last figure of the extensions.
    package func clientCertificate(
        userID: String = Campaign.topic, topics: [String] = [], environments: [Int] = [1, 2],
        commonName: String = "Push", days: Int = 90, in directory: TemporaryDirectory,
        name: String = "client"
    ) throws -> ServerIdentity {
        let path = "\(directory.path)/\(name)"
        let arc = "1.2.840.113635.100.6.3"
        var text = "extendedKeyUsage=clientAuth\n"
        for environment in environments { text += "\(arc).\(environment)=DER:0500\n" }
        if !topics.isEmpty {
            text += "\(arc).6=ASN1:SEQUENCE:topics\n[topics]\n"
            for (index, topic) in topics.enumerated() {
                text += "t.\(2 * index)=UTF8String:\(topic)\n"
                text += "t.\(2 * index + 1)=SEQWRAP,UTF8String:app\n"
            }
        }
        try directory.write(text, to: "\(name).cnf")
        let authority = self.directory.path
        for line in [
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out \(path).key",
            "req -new -key \(path).key -subj SUBJECT -out \(path).csr",
            "x509 -req -in \(path).csr -CA \(authority)/authority.pem "
                + "-CAkey \(authority)/authority.key -days \(days) -extfile \(path).cnf "
                + "-out \(path).pem",
        ] {
            let words = line.split(separator: " ").map {
                $0 == "SUBJECT" ? "/UID=\(userID)/CN=\(commonName)" : String($0)
            }
            try Subprocess.run("openssl", words, in: directory)
        }
        return ServerIdentity(certificate: "\(path).pem", key: "\(path).key")
    }
}

extension ServerIdentity {
    /// Certificate and key in one file, as keychains write them.
    ///
    /// - Parameter options: More for `openssl pkcs12`: ciphers.
    /// - Returns: The file's path.
    package func bundle(
        passphrase: String, _ options: [String] = [], in directory: TemporaryDirectory
    ) throws -> String {
        let path = "\(directory.path)/client.p12"
        try Subprocess.run(
            "openssl",
            ["pkcs12", "-export"] + options + [
                "-in", certificate, "-inkey", key, "-passout", "pass:\(passphrase)", "-out", path,
            ], in: directory)
        return path
    }
}
