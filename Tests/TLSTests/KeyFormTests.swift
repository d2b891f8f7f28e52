@testable import BroadsideTLS
import Foundation
import Testing

/// Keys and certificates as shells, editors and stores of secrets leave them.
@Suite struct KeyFormTests {
    private static let pem = SigningKeyTests.examplePEM
    private static let text = String(decoding: pem, as: UTF8.self)

    private static func command(_ arguments: [String]) throws -> [UInt8] {
        let (status, output) = try Command.run(arguments)
        #expect(status == 0 && !output.isEmpty)
        return output
    }

    /// Each form by its name.
    static func forms(_ pem: [UInt8], der: [UInt8]) -> [(name: String, file: [UInt8])] {
        let text = String(decoding: pem, as: UTF8.self)
        let lines = text.split(separator: "\n").map(String.init)
        let oneLine: String = lines.joined(separator: " ")
        let writtenOut: String = text.replacing("\n", with: "\\n")
        let base64: String = Data(pem).base64EncodedString()
        let base64OfDER: String = Data(der).base64EncodedString()
        let forURLs: String = base64OfDER.replacing("+", with: "-").replacing("/", with: "_")
        var forms: [(name: String, file: [UInt8])] = []
        func add(_ name: String, _ text: String) { forms.append((name, Array(text.utf8))) }
        add("as it is", text)
        add("CRLF", text.replacing("\n", with: "\r\n"))
        add("mark", "\u{feff}\(text)")
        add("written out", writtenOut)
        add("written out, CRLF", text.replacing("\n", with: "\\r\\n"))
        add("written out twice", text.replacing("\n", with: "\\\\n"))
        add("quotes", "\"\(writtenOut)\"\n")
        add("one line", oneLine)
        add("joined", lines.joined())
        add("indented", lines.map { "    \($0)" }.joined(separator: "\n"))
        add("no line end", String(text.dropLast()))
        add("text before", "Key:\n\n  \(oneLine)")
        add("JSON", "{\"key\": \"\(writtenOut)\"}")
        add("base64", base64)
        add("base64, line end", "\(base64)\n")
        add("base64, lines", Data(pem).base64EncodedString(options: [.lineLength76Characters]))
        add("base64 twice", Data(base64.utf8).base64EncodedString())
        add("base64 of DER", base64OfDER)
        add("base64 of DER, for URLs", forURLs.replacing("=", with: ""))
        forms.append(("DER", der))
        forms.append(("DER, line end", der + [0x0a]))
        let wide = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        forms.append(("UTF-16", [0xff, 0xfe] + wide))
        let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        forms.append(("UTF-16, big end first", [0xfe, 0xff] + big))
        return forms
    }

    @Test func `A key is read in each file format`() throws {
        let folder = Folder()
        let key = try folder.file("key.pem", Self.pem)
        let sec1 = try Self.command(["ec", "-in", key])
        let sources = [
            (Self.pem, try Self.command(["pkey", "-in", key, "-outform", "DER"])),
            (sec1, try Self.command(["ec", "-in", key, "-outform", "DER"])),
        ]
        let expected = try SigningKey(pem: Self.pem).pem
        for (pem, der) in sources {
            for form in Self.forms(pem, der: der) {
                #expect(try SigningKey(pem: form.file).pem == expected, "\(form.name)")
            }
        }
    }

    @Test func `DER keys of all lengths are read`() throws {
        let folder = Folder()
        for index in 0..<40 {
            let kind =
                index < 30
                ? ["EC", "-pkeyopt", "ec_paramgen_curve:P-\(["256", "384", "521"][index % 3])"]
                : ["RSA", "-pkeyopt", "rsa_keygen_bits:1024"]
            let pem = try Self.command(["genpkey", "-algorithm"] + kind)
            let file = try folder.file("key.pem", pem)
            let der = try Self.command(["pkey", "-in", file, "-outform", "DER"])
            #expect(try PrivateKey(pem: der).pem == PrivateKey(pem: pem).pem, "\(der.count) bytes")
        }
    }

    @Test func `A protected DER key needs its passphrase`() throws {
        let folder = Folder()
        let key = try folder.file("key.pem", Self.pem)
        let der = try Self.command([
            "pkcs8", "-topk8", "-in", key, "-outform", "DER", "-passout", "pass:word",
        ])
        #expect(
            try PrivateKey(pem: der, passphrase: Array("word\0".utf8)).pem
                == PrivateKey(pem: Self.pem).pem)
        #expect(throws: TLSError.self) { _ = try PrivateKey(pem: der) }
        let error = #expect(throws: TLSError.self) {
            _ = try PrivateKey(pem: Array(Data(der).base64EncodedString().utf8))
        }
        #expect(error?.code == .passphraseMissing)
    }

    /// The ciphers are in OpenSSL's legacy provider.
    @Test(arguments: [
        ["pkcs8", "-topk8", "-v2", "rc2"], ["pkcs8", "-topk8", "-v1", "PBE-MD5-DES"],
        ["pkcs8", "-topk8", "-v1", "PBE-SHA1-RC2-40"],
        ["pkcs8", "-topk8", "-v2", "rc2", "-outform", "DER"], ["ec", "-des"], ["ec", "-rc2"],
    ])
    func `A key protected by an old cipher needs its passphrase`(command: [String]) throws {
        let folder = Folder()
        let file = try Self.command(
            command.prefix(1) + ["-provider", "legacy", "-provider", "default"]
                + command.dropFirst() + [
                    "-in", try folder.file("key.pem", Self.pem), "-passout", "pass:word",
                ])
        #expect(
            try PrivateKey(pem: file, passphrase: Array("word\0".utf8)).pem
                == PrivateKey(pem: Self.pem).pem)
        let wrong = #expect(throws: TLSError.self) {
            _ = try PrivateKey(pem: file, passphrase: Array("wrong\0".utf8))
        }
        #expect(wrong?.code == .passphraseWrong)
        let missing = #expect(throws: TLSError.self) { _ = try PrivateKey(pem: file) }
        #expect(missing?.code == .passphraseMissing)
    }

    /// One in 256 wrong passphrases leaves text with valid padding, which is not a key.
    @Test func `A wrong passphrase never counts as a cipher that is missing`() throws {
        let folder = Folder()
        let key = try folder.file("key.pem", Self.pem)
        let files = [
            try Self.command([
                "pkcs8", "-topk8", "-iter", "1", "-in", key, "-passout", "pass:word",
            ]), try Self.command(["ec", "-aes128", "-in", key, "-passout", "pass:word"]),
        ]
        for file in files {
            for index in 0..<1_000 {
                let error = #expect(throws: TLSError.self) {
                    _ = try PrivateKey(pem: file, passphrase: Array("wrong\(index)\0".utf8))
                }
                #expect(error?.code == .passphraseWrong)
            }
        }
    }

    @Test func `A certificate is read in each format with its key in each format`() throws {
        let (certificate, key) = (World.server.certificateChain, World.server.privateKey)
        let der = try Certificate.all(pem: certificate)[0].der
        let folder = Folder()
        let keyDER = try Self.command([
            "pkey", "-in", try folder.file("key", key), "-outform", "DER",
        ])
        for form in Self.forms(try Certificate(der: der).pem, der: der) {
            let identity = try TLSIdentity.read(certificate: form.file, key: key, passphrase: nil)
            #expect(try identity.leaf.der == der, "\(form.name)")
        }
        for form in Self.forms(key, der: keyDER) {
            let identity = try TLSIdentity.read(
                certificate: certificate, key: form.file, passphrase: nil)
            #expect(try identity.key.pem == PrivateKey(pem: key).pem, "\(form.name)")
        }
        let both = Array(
            String(decoding: certificate + key, as: UTF8.self).replacing("\n", with: "\\n").utf8)
        #expect(try TLSIdentity.read(certificate: both, key: nil, passphrase: nil).leaf.der == der)
    }

    @Test func `Of several certificates, the one that belongs to the key is the leaf`() throws {
        let (leaf, key) = (World.server.certificateChain, World.server.privateKey)
        let authority = World.authority.certificate.pem
        let expected = try [leaf, authority].flatMap { try Certificate.all(pem: $0).map(\.der) }
        for parts in [[authority, leaf, key], [key, authority, leaf], [leaf, key, authority]] {
            let identity = try TLSIdentity.read(
                certificate: Array(parts.joined()), key: nil, passphrase: nil)
            #expect(try Certificate.all(pem: identity.certificateChain).map(\.der) == expected)
            _ = try World.clientContext { $0.identity = identity }
        }
        let other = try TLSIdentity.read(
            certificate: authority + leaf, key: Self.pem, passphrase: nil)
        #expect(try other.leaf.der == expected[1], "no certificate belongs to this key")
    }

    @Test func `PKCS#12 in base64 is read, and refused as a key with its name`() throws {
        let folder = Folder()
        let file = try Self.command([
            "pkcs12", "-export", "-in", try folder.file("c", World.server.certificateChain),
            "-inkey", try folder.file("k", World.server.privateKey), "-passout", "pass:word",
        ])
        let text = Array(Data(file).base64EncodedString().utf8)
        for form in [file, text] {
            let identity = try TLSIdentity.read(
                certificate: form, key: nil, passphrase: Array("word".utf8))
            #expect(try identity.key.pem == PrivateKey(pem: World.server.privateKey).pem)
            #expect(Self.message(form).contains("PKCS#12"))
        }
    }

    @Test(arguments: [
        (
            "-nocerts",
            "has no certificate of its private key: export both together, or write the key"
        ),
        ("-nokeys", "has no private key: export the certificate together with its key"),
    ])
    func `PKCS#12 without a certificate or without a key is refused, and the missing part is named`(
        option: String, problem: String
    ) throws {
        let folder = Folder()
        let file = try Self.command([
            "pkcs12", "-export", option, "-in", try folder.file("c", World.server.certificateChain),
            "-inkey", try folder.file("k", World.server.privateKey), "-passout", "pass:word",
        ])
        let error = #expect(throws: TLSIdentity.ReadingError.self) {
            _ = try TLSIdentity.read(certificate: file, key: nil, passphrase: Array("word".utf8))
        }
        #expect(error?.error.message.contains(problem) == true)
        #expect(
            error?.error.message.contains("'openssl pkcs12 -nocerts ") == (option == "-nocerts"))
    }

    @Test func `A passphrase in another encoding than that of PKCS#12 is named as the cause`()
        throws
    {
        let folder = Folder()
        let (utf8, latin1) = (Array("p\u{e4}ss".utf8), [0x70, 0xe4, 0x73, 0x73] as [UInt8])
        let file = try Self.command([
            "pkcs12", "-export", "-in", try folder.file("c", World.server.certificateChain),
            "-inkey", try folder.file("k", World.server.privateKey), "-passout",
            "file:\(try folder.file("word", utf8))",
        ])
        _ = try TLSIdentity.read(certificate: file, key: nil, passphrase: utf8)
        let error = #expect(throws: TLSIdentity.ReadingError.self) {
            _ = try TLSIdentity.read(certificate: file, key: nil, passphrase: latin1)
        }
        #expect(error?.error.code == .passphraseWrong)
        #expect(error?.error.message.contains("in another encoding (UTF-8, Latin-1)") == true)
    }

    @Test func `PKCS#12 without a MAC is read without a passphrase, or refused with a command`()
        throws
    {
        let folder = Folder()
        let certificate = try folder.file("c", World.server.certificateChain)
        let key = try folder.file("k", World.server.privateKey)
        func file(_ passphrase: String) throws -> [UInt8] {
            try Self.command([
                "pkcs12", "-export", "-nomac", "-in", certificate, "-inkey", key, "-passout",
                "pass:\(passphrase)",
            ])
        }
        _ = try TLSIdentity.read(certificate: try file(""), key: nil, passphrase: nil)
        let encrypted = try file("word")
        for passphrase in [Array("word".utf8), nil] {
            let error = #expect(throws: TLSIdentity.ReadingError.self) {
                _ = try TLSIdentity.read(
                    certificate: encrypted, key: nil, passphrase: passphrase)
            }
            #expect(error?.error.code == .certificateUnreadable)
            #expect(error?.error.message.contains("'openssl pkcs12 -nomacver -in FILE") == true)
        }
    }

    @Test
    func `PKCS#7 and OpenSSL's trusted certificates are refused with a command that converts`()
        throws
    {
        let folder = Folder()
        let certificate = try folder.file("c", World.server.certificateChain)
        for (arguments, convert) in [
            (["crl2pkcs7", "-nocrl", "-certfile", certificate], ["pkcs7", "-print_certs"]),
            (
                ["crl2pkcs7", "-nocrl", "-certfile", certificate, "-outform", "DER"],
                ["pkcs7", "-print_certs", "-inform", "DER"]
            ), (["x509", "-trustout", "-in", certificate], ["x509"]),
        ] {
            let file = try Self.command(arguments)
            let error = #expect(throws: TLSIdentity.ReadingError.self) {
                _ = try TLSIdentity.read(
                    certificate: file, key: World.server.privateKey, passphrase: nil)
            }
            let command = "'openssl \(convert.joined(separator: " ")) -in FILE -out NEWFILE'"
            #expect(error?.part == .certificate)
            #expect(error?.error.message.contains(command) == true, "\(error as Any)")
            let converted = try Self.command(convert + ["-in", try folder.file("p", file)])
            _ = try TLSIdentity.read(
                certificate: converted, key: World.server.privateKey, passphrase: nil)
        }
    }

    @Test func `Two different keys in a file are refused, and the same key twice is read`() throws {
        let other = try SigningKey(PrivateKey.generate()).pem
        let folder = Folder()
        let sec1 = try Self.command(["ec", "-in", try folder.file("key.pem", Self.pem)])
        for file in [Self.pem + other, other + sec1, Self.pem + Self.pem + other] {
            #expect(Self.message(file).contains("several private keys"))
            let oneLine = String(decoding: file, as: UTF8.self).replacing("\n", with: "\\n")
            #expect(Self.message(Array(oneLine.utf8)).contains("several private keys"))
        }
        let expected = try SigningKey(pem: Self.pem).pem
        let rsa = try Self.command([
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
        ])
        let compressed = try Self.command([
            "ec", "-in", try folder.file("key.pem", Self.pem), "-conv_form", "compressed",
        ])
        for second in [Self.pem, sec1, rsa, compressed] {
            #expect(try SigningKey(pem: Self.pem + second).pem == expected)
        }
        #expect(try SigningKey(pem: sec1 + Self.pem).pem == expected)
    }

    @Test func `A second key that is damaged or encrypted is refused, and a commented one is not`()
        throws
    {
        let other = try SigningKey(PrivateKey.generate()).pem
        let text = String(decoding: other, as: UTF8.self)
        let folder = Folder()
        let encrypted = try Self.command([
            "ec", "-aes128", "-in", try folder.file("key.pem", other), "-passout", "pass:word",
        ])
        let cut = other.dropLast("-----END PRIVATE KEY-----\n".utf8.count)
        for second in [cut, Array(text.replacing("\nM", with: "\n?").utf8)[...], encrypted[...]] {
            #expect(Self.message(Self.pem + second).contains("several private keys"))
        }
        let lines = text.split(separator: "\n").map { "# \($0)\n" }.joined()
        let read = try SigningKey(pem: Self.pem + Array(lines.utf8))
        #expect(try read.pem == SigningKey(pem: Self.pem).pem)
    }

    private static func message(_ file: [UInt8]) -> String {
        let error = #expect(throws: TLSError.self) { _ = try SigningKey(pem: file) }
        return error?.message ?? ""
    }

    @Test func `A file that is not a key is named as what it is`() throws {
        let folder = Folder()
        let key = try folder.file("key.pem", Self.pem)
        let rsa = try Self.command([
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
        ])
        let escaped = String(decoding: rsa, as: UTF8.self).replacing("\n", with: "\\n")
        let account = """
            {"type": "service_account", "project_id": "app", "private_key_id": "00",
             "private_key": "\(escaped)"}
            """
        #expect(Self.message(Array(account.utf8)).contains("Firebase"))
        #expect(Self.message(Array(escaped.utf8)).contains("not an elliptic curve key"))
        #expect(Self.message(Array("\n \n".utf8)).contains("empty"))
        let jwt = Array("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJYIn0.c2ln".utf8)
        #expect(Self.message(jwt).contains("provider token"))
        let request = try Self.command(["req", "-new", "-key", key, "-subj", "/CN=x"])
        let requestDER = try Self.command([
            "req", "-in", try folder.file("r", request), "-outform", "DER",
        ])
        for form in Self.forms(request, der: requestDER) where form.name != "text before" {
            #expect(Self.message(form.file).contains("certificate request"), "\(form.name)")
        }
        let certificate = World.server.certificateChain
        let der = try Certificate.all(pem: certificate)[0].der
        for form in Self.forms(try Certificate(der: der).pem, der: der) {
            #expect(Self.message(form.file).contains("contains a certificate"), "\(form.name)")
        }
        let publicKey = try Self.command(["pkey", "-in", key, "-pubout"])
        let publicDER = try Self.command(["pkey", "-in", key, "-pubout", "-outform", "DER"])
        for form in Self.forms(publicKey, der: publicDER) {
            #expect(Self.message(form.file).contains("contains a public key"), "\(form.name)")
        }
        let error = #expect(throws: TLSIdentity.ReadingError.self) {
            _ = try TLSIdentity.read(certificate: Self.pem, key: nil, passphrase: nil)
        }
        #expect(error?.error.message.contains("a private key and no certificate") == true)
    }

    @Test func `A key without its end is damaged in each format`() throws {
        let lines = Self.text.split(separator: "\n")
        let cut = lines.dropLast().joined(separator: "\n")
        for text in [cut, cut.replacing("\n", with: "\\n"), cut.replacing("\n", with: " ")] {
            #expect(throws: TLSError.self) { _ = try SigningKey(pem: Array(text.utf8)) }
        }
    }

    @Test func `A cut or changed key file never traps`() {
        let texts = [
            Self.text, Self.text.replacing("\n", with: "\\n"), "-----BEGIN PRIVATE KEY",
            "-----BEGIN -----", "-----BEGIN -----END", "-----BEGIN PRIVATE KEY-----\\",
            "-----BEGIN A----------END A-----", "0", "0\u{1}", "0000", "\\", "=", "\"",
        ]
        for text in texts {
            let bytes = Array(text.utf8)
            for count in 0...bytes.count {
                _ = try? SigningKey(pem: Array(bytes.prefix(count)))
                _ = try? TLSIdentity.read(
                    certificate: Array(bytes.suffix(count)), key: nil, passphrase: nil)
            }
        }
        for length in [0, 1, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0xff] as [UInt8] {
            for count in 0..<40 {
                let file = [0x30, length] + [UInt8](repeating: length, count: count)
                _ = try? SigningKey(pem: file)
                _ = KeyForm.unwrapped(file)
            }
        }
    }
}
