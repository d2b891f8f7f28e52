import Testing

@testable import BroadsideTLS

@Suite("Keys and signatures") struct SigningKeyTests {
    /// RFC 7515 appendix A.3.
    static let examplePEM = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
        H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
        7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
        -----END PRIVATE KEY-----

        """.utf8)
    static let input = Array(
        ("eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ"
            + ".eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0IjoxNDM3MTc5MDM2fQ").utf8)
    static let raw = hex(
        "0ecbd2824c44dce96c8efd9443f915ccf662ed7831f3565b62d76aaf9f2c724f"
            + "e0fdbdf717a1cddcd2591dd55166cc40bcc06708014365b5ed520e4fd4db5506")
    static let der = hex(
        "304502200ecbd2824c44dce96c8efd9443f915ccf662ed7831f3565b62d76aaf9f2c724f"
            + "022100e0fdbdf717a1cddcd2591dd55166cc40bcc06708014365b5ed520e4fd4db5506")

    static func hex(_ text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)!
        }
    }

    @Test func `SHA-256 of the vector's signing input is the published digest`() {
        let digest = Self.hex("332339fc39ab954c724c5d94aa56c3dc1ac58a6dafc800d489a1d58f956ffd3b")
        #expect(sha256(Self.input) == digest)
        #expect(
            sha256([])
                == Self.hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
    }

    @Test func `The vector's signature verifies as raw bytes and as DER`() throws {
        let key = try SigningKey(pem: Self.examplePEM).verifyingKey
        #expect(key.verifies(Self.raw, over: Self.input))
        #expect(key.verifies(Self.der, over: Self.input))
        #expect(ES256Signature.raw(fromDER: Self.der) == Self.raw)
        #expect(ES256Signature.der(fromRaw: Self.raw) == Self.der)
    }

    @Test func `A changed signature, message or key does not verify`() throws {
        let key = try SigningKey(pem: Self.examplePEM).verifyingKey
        for index in Self.raw.indices {
            var changed = Self.raw
            changed[index] ^= 1
            #expect(!key.verifies(changed, over: Self.input))
        }
        #expect(!key.verifies(Self.raw, over: Self.input + [0]))
        #expect(!key.verifies([], over: Self.input))
        #expect(!key.verifies(Array(Self.raw.dropLast()), over: Self.input))
        #expect(!key.verifies(Self.der + [0], over: Self.input))
        #expect(!key.verifies([UInt8](repeating: 0, count: 64), over: Self.input))
        let other = try SigningKey(PrivateKey.generate()).verifyingKey
        #expect(!other.verifies(Self.raw, over: Self.input))
    }

    /// Enough signatures that some R or S begins with a zero byte, and some DER is shorter.
    @Test func `Each of 1,000 signatures has 64 bytes and verifies`() throws {
        let key = try SigningKey(PrivateKey.generate())
        let verifying = try key.verifyingKey
        var short = 0
        for round in 0..<1000 {
            let message = Array("message \(round)".utf8)
            let signature = try key.signES256(message)
            #expect(signature.count == 64)
            #expect(verifying.verifies(signature, over: message))
            if signature[0] == 0 || signature[32] == 0 { short += 1 }
        }
        #expect(short > 0)
    }

    @Test func `openssl dgst verifies a signature of ours`() throws {
        let folder = Folder()
        let key = try SigningKey(pem: Self.examplePEM)
        let der = try #require(ES256Signature.der(fromRaw: key.signES256(Self.input)))
        let (status, output) = try Command.run(
            [
                "dgst", "-sha256", "-verify",
                try folder.file("public.pem", key.verifyingKey.pem),
                "-signature", try folder.file("signature", der),
            ], input: Self.input)
        #expect(status == 0)
        #expect(String(decoding: output, as: UTF8.self).contains("Verified OK"))
    }

    @Test func `A signature by openssl dgst verifies`() throws {
        let folder = Folder()
        let key = try SigningKey(pem: Self.examplePEM)
        let (status, der) = try Command.run(
            ["dgst", "-sha256", "-sign", try folder.file("key.p8", key.pem)], input: Self.input)
        #expect(status == 0 && der.count >= 68)
        #expect(try key.verifyingKey.verifies(der, over: Self.input))
        let raw = try #require(ES256Signature.raw(fromDER: der))
        #expect(try key.verifyingKey.verifies(raw, over: Self.input))
    }

    private func error(_ pem: [UInt8]) -> TLSError? {
        let error = #expect(throws: TLSError.self) { _ = try SigningKey(pem: pem) }
        #expect(error?.message.contains("\n") == false)
        return error
    }

    private func command(_ arguments: [String]) throws -> [UInt8] {
        let (status, output) = try Command.run(arguments)
        #expect(status == 0 && !output.isEmpty)
        return output
    }

    @Test func `A file that is not a private key fails with what it holds`() throws {
        #expect(error([])?.code == .keyUnreadable)
        #expect(error(Array("{\"key\": 1}".utf8))?.message.contains(".p8") == true)
        #expect(error(World.server.certificateChain)?.code == .keyUnreadable)
        #expect(
            error(World.server.certificateChain)?.message
                .contains("the file contains a certificate instead of a private key") == true)
        let folder = Folder()
        let file = try folder.file("key.pem", Self.examplePEM)
        #expect(
            error(try command(["pkey", "-in", file, "-pubout"]))?.message
                .contains("the file contains a public key instead of a private key") == true)
        var damaged = Self.examplePEM
        damaged[60] = UInt8(ascii: "!")
        #expect(error(damaged)?.message.contains("damaged") == true)
    }

    @Test func `An encrypted key fails with the command that decrypts it`() throws {
        let folder = Folder()
        let file = try folder.file("key.pem", Self.examplePEM)
        for arguments in [
            ["pkcs8", "-topk8", "-in", file, "-passout", "pass:secret"],
            ["ec", "-in", file, "-aes128", "-passout", "pass:secret"],
        ] {
            let found = error(try command(arguments))
            #expect(found?.code == .passphraseMissing)
            #expect(found?.message.contains("openssl pkey") == true)
        }
    }

    @Test func `A key of another kind or curve fails with its name`() throws {
        let rsa = error(
            try command(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]))
        #expect(rsa?.code == .keyNotEC)
        #expect(error(try command(["genpkey", "-algorithm", "ED25519"]))?.code == .keyNotEC)
        let curve = error(
            try command(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]))
        #expect(curve?.code == .keyWrongCurve)
        #expect(curve?.message.contains("secp384r1") == true)
        let sibling = error(
            try command(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"]))
        #expect(sibling?.code == .keyWrongCurve)
    }

    @Test func `An EC key in SEC 1 form is read`() throws {
        let folder = Folder()
        let file = try folder.file("key.pem", Self.examplePEM)
        let sec1 = try command(["ec", "-in", file])
        #expect(try SigningKey(pem: sec1).pem == SigningKey(pem: Self.examplePEM).pem)
    }

    /// Java writes keys without the public key; `openssl ec` writes all of these forms.
    @Test(arguments: [
        ["-no_public"], ["-conv_form", "compressed"], ["-conv_form", "hybrid"],
        ["-param_enc", "explicit"],
        ["-no_public", "-conv_form", "compressed", "-param_enc", "explicit"],
    ])
    func `A key without its public key, or in another form, signs like the common form`(
        form: [String]
    ) throws {
        let folder = Folder()
        let file = try folder.file("key.pem", Self.examplePEM)
        let sec1 = try command(["ec", "-in", file] + form)
        let pkcs8 = try command([
            "pkcs8", "-topk8", "-nocrypt", "-in", try folder.file("sec1.pem", sec1),
        ])
        let common = try SigningKey(pem: Self.examplePEM)
        for text in [sec1, pkcs8] {
            let key = try SigningKey(pem: text)
            #expect(key.pem == common.pem)
            #expect(key.signWithGnuTLS(Self.input) == common.signWithGnuTLS(Self.input))
            #expect(try key.signES256(Self.input) == common.signES256(Self.input))
            #expect(try key.verifyingKey.verifies(Self.raw, over: Self.input))
            try key.checkThatItSigns()
        }
    }

    @Test func `A public key is read, and other text is refused`() throws {
        let key = try SigningKey(pem: Self.examplePEM).verifyingKey
        #expect(try VerifyingKey(pem: key.pem).verifies(Self.raw, over: Self.input))
        #expect(throws: TLSError.self) { _ = try VerifyingKey(pem: Array("none".utf8)) }
    }

    @Test func `Random bytes differ`() {
        #expect(randomBytes(32) != randomBytes(32))
        #expect(randomBytes(0).isEmpty)
    }
}
