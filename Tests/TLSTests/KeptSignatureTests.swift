import Testing

@testable import BroadsideTLS

/// A PKCS#11 token signs each message otherwise each time; a run keeps the signatures that it may need again.
@Suite struct KeptSignatureTests {
    @Test func `The last four messages keep their signatures, and earlier ones get new ones`()
        throws
    {
        let signer = try unsafe TokenKey(PrivateKey(pem: SigningKeyTests.examplePEM), library: nil)
        let messages = (0..<5).map { Array("message \($0)".utf8) }
        let first = try messages.map { try signer.sign($0) }
        #expect(Set(first).count == 5 && first.allSatisfy { $0.count == 64 })
        for index in (1..<5).reversed() {
            #expect(try signer.sign(messages[index]) == first[index], "\(index)")
        }
        // Signed again, with another nonce, in the place of the oldest.
        let again = try signer.sign(messages[0])
        #expect(again != first[0])
        #expect(try signer.sign(messages[0]) == again)
        #expect(try signer.sign(messages[1]) != first[1])
        #expect(try signer.sign(messages[4]) == first[4])
    }
}
