import Testing

@testable import BroadsideAPNs
@testable import BroadsidePrimitives

@Suite struct ProviderTokenClaimsTests {
    let claims = ProviderTokenClaims(
        keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAtUnixSeconds: 1_437_179_036)
    let input =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ.eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0IjoxNDM3MTc5MDM2fQ"

    /// R and S of vector V15.
    let signature = hexBytes(
        "0ecbd2824c44dce96c8efd9443f915ccf662ed7831f3565b62d76aaf9f2c724f"
            + "e0fdbdf717a1cddcd2591dd55166cc40bcc06708014365b5ed520e4fd4db5506")

    @Test func `The signing input of the documented claims is vector V14`() {
        #expect(String(decoding: claims.signingInput, as: UTF8.self) == input)
        #expect(claims.signingInput.count == 97)
    }

    @Test func `The compact token of the documented claims and signature is vector V15`() {
        let token = ProviderTokenClaims.compactToken(
            signingInput: claims.signingInput, signature: signature)
        #expect(
            String(decoding: token, as: UTF8.self) == input
                + ".DsvSgkxE3Olsjv2UQ_kVzPZi7Xgx81ZbYtdqr58sck_g_b33F6HN3NJZHdVRZsxAvMBnCAFDZbXtUg5P1NtVBg"
        )
        #expect(ProviderTokenClaims.authorization(token).count == 191)
    }

    @Test func `A compact token is parsed into the claims and signature it was made from`() throws {
        let token = ProviderTokenClaims.compactToken(
            signingInput: claims.signingInput, signature: signature)
        let parsed = try ProviderTokenClaims.parse(token)
        #expect(parsed.claims == claims)
        #expect(parsed.signingInputCount == 97)
        #expect(parsed.signature == signature)
    }

    /// Apple's printed sample has no `alg`, and `iat` as a string of milliseconds.
    @Test func `Vector V17, without alg and with a textual iat, is refused`() {
        let sample =
            "eyAia2lkIjogIjhZTDNHM1JSWDciIH0.eyAiaXNzIjogIkM4Nk5WOUpYM0QiLCAiaWF0IjogIjE0NTkxNDM1ODA2NTAiIH0.MEYCIQDzqyahmH1rz1s-LFNkylXEa2lZ_aOCX4daxxTZkVEGzwIhALvkClnx5m5eAT6Lxw7LZtEQcH6JENhJTMArwLf3sXwi"
        #expect(throws: APNsError(.badProviderToken, at: 0)) {
            try ProviderTokenClaims.parse(Array(sample.utf8))
        }
    }

    /// RFC 7519 section 2, NumericDate: "non-integer values can be represented"; and what senders
    /// write that APNs takes.
    @Test(arguments: [
        ("1437179036", false), ("1437179036.0", false), ("1437179036.9999", false),
        ("1.437179036e9", false), ("14371790365E-1", false), (#""1437179036""#, true),
    ])
    func `Each numeric or textual form of the same issue time is parsed into that time`(
        _ issueTime: String, isText: Bool
    ) throws {
        let token =
            Base64URL.encode(Array(#"{"alg":"ES256","kid":"ABC123DEFG"}"#.utf8)) + [0x2e]
            + Base64URL.encode(Array(#"{"iss":"DEF123GHIJ","iat":\#(issueTime)}"#.utf8)) + [0x2e]
            + Base64URL.encode(signature)
        let parsed = try ProviderTokenClaims.parse(token)
        #expect(parsed.claims == claims)
        #expect(parsed.hasTextualIssueTime == isText)
    }

    @Test(arguments: [
        (#"{"alg":"HS256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1437179036}"#),
        (#"{"kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1437179036}"#),
        (#"{"alg":"ES256","kid":"short"}"#, #"{"iss":"DEF123GHIJ","iat":1437179036}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":"1437179036000"}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":"1437179036.5"}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":"+1437179036"}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":" 1437179036"}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":""}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":"now"}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":-1}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1e300}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1e999}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":true}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":null}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1437179036000}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iat":1437179036}"#),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, #"["iss"]"#),
        (#"{"alg":"ES256","alg":"ES256","kid":"ABC123DEFG"}"#, #"{"iss":"DEF123GHIJ","iat":1}"#),
    ]) func `A header or claims with a missing or wrong member are refused`(
        header: String, claims: String
    ) {
        let token =
            Base64URL.encode(Array(header.utf8)) + [0x2e] + Base64URL.encode(Array(claims.utf8))
            + [0x2e] + Base64URL.encode([1, 2, 3])
        #expect(throws: APNsError.self) { try ProviderTokenClaims.parse(token) }
    }

    @Test func `Base64url text decodes to the bytes that were encoded, and malformed text to nil`()
    {
        var random = SeededGenerator(seed: 4)
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
        #expect(Base64URL.decode(Array("A".utf8)) == nil)
        #expect(Base64URL.decode(Array("AB".utf8)) == nil)
        #expect(Base64URL.decode(Array("AA==".utf8)) == nil)
        #expect(Base64URL.decode(Array("A+".utf8)) == nil)
    }
}
