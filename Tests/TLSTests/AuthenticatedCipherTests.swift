import Testing

@testable import BroadsideTLS

@Suite struct AuthenticatedCipherTests {
    private static func hexBytes(_ text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)!
        }
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 13, 14 and 15.
    @Test(arguments: [
        ("00", "00", "", "530f8afbc74536b9a963b4f1c4cb738b"),
        (
            "00", "00", "00000000000000000000000000000000",
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
        ),
        (
            "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            "cafebabefacedbaddecaf888",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
                + "b094dac5d93471bdec1a502270e3cc6c"
        ),
    ])
    func `Test cases 13 to 15 of McGrew and Viega seal and open, and each forged byte fails`(
        _ key: String, nonce: String, message: String, sealed: String
    ) {
        let key = key == "00" ? [UInt8](repeating: 0, count: 32) : Self.hexBytes(key)
        let nonce = nonce == "00" ? [UInt8](repeating: 0, count: 12) : Self.hexBytes(nonce)
        let cipher = AuthenticatedCipher(key: key)
        let sealed = Self.hexBytes(sealed)
        #expect(cipher.seal(Self.hexBytes(message), nonce: nonce) == sealed)
        #expect(cipher.open(sealed, nonce: nonce) == Self.hexBytes(message))
        for position in sealed.indices {
            var forged = sealed
            forged[position] ^= 1
            #expect(cipher.open(forged, nonce: nonce) == nil)
        }
        #expect(cipher.open([], nonce: nonce) == nil)
        #expect(cipher.open(sealed, nonce: []) == nil)
    }
}
