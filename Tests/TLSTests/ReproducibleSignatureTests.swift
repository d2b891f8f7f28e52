import Testing

@testable import BroadsideTLS

/// ECDSA with the nonce of RFC 6979, by both libraries.
struct ReproducibleSignatureTests {
    /// The key of RFC 6979, appendix A.2.5.
    private static let keyPEM = Array(
        """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX
        Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARg/tS6JVqdMclh63TGNW1owEm4kjth
        +mzmaWIuYPKftnkD/hAIuLyZpBrp6VYovGTy8bIMLX6fUXejwpTURiKZ
        -----END PRIVATE KEY-----

        """.utf8)

    /// Appendix A.2.5, with SHA-256: a message, r and s.
    private static let vectors = [
        (
            "sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
        ),
        (
            "test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367"
                + "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"
        ),
    ]

    /// Whether this process' OpenSSL can choose the nonce: it can from 3.2 on.
    private static let hasOpenSSL =
        (try? SigningKey(pem: keyPEM).signWithOpenSSL([])).flatMap(\.self) != nil

    @Test(arguments: vectors)
    func `GnuTLS makes the reproducible signatures of the vectors`(
        message: String, signature: String
    ) throws {
        let key = try SigningKey(pem: Self.keyPEM)
        let made = key.signWithGnuTLS(Array(message.utf8))
        #expect(made == SigningKeyTests.hex(signature))
    }

    @Test(
        .enabled(if: hasOpenSSL, "OpenSSL is older than 3.2: run with another in LD_LIBRARY_PATH"),
        arguments: vectors)
    func `OpenSSL makes the reproducible signatures of the vectors`(
        message: String, signature: String
    ) throws {
        let key = try SigningKey(pem: Self.keyPEM)
        let made = try key.signWithOpenSSL(Array(message.utf8))
        #expect(made == SigningKeyTests.hex(signature))
    }

    @Test(arguments: vectors)
    func `The library that is installed makes the reproducible signatures of the vectors`(
        message: String, signature: String
    ) throws {
        let key = try SigningKey(pem: Self.keyPEM)
        let made = try key.signES256(Array(message.utf8))
        #expect(made == SigningKeyTests.hex(signature))
    }

    /// Enough messages that some R or S begins with a zero byte.
    @Test func `Each of 600 GnuTLS signatures has 64 bytes and verifies`() throws {
        let key = try SigningKey(PrivateKey.generate())
        let verifying = try key.verifyingKey
        for round in 0..<600 {
            let message = Array("message \(round)".utf8)
            let signature = try #require(key.signWithGnuTLS(message))
            #expect(signature.count == 64)
            #expect(verifying.verifies(signature, over: message))
        }
    }
}
