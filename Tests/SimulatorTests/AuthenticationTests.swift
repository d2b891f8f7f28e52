import BroadsideAPNs
import BroadsidePrimitives
import BroadsideTLS
import Testing

@testable import BroadsideSimulator

@Suite struct AuthenticationTests {
    static let now: UInt64 = 1_437_179_036

    /// Vector V14 with its signature raw (V15) and as DER (V16); the key is RFC 7515's example.
    static let input =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ"
        + ".eyJpc3MiOiJERUYxMjNHSElKIiwiaWF0IjoxNDM3MTc5MDM2fQ"
    static let raw =
        input
        + ".DsvSgkxE3Olsjv2UQ_kVzPZi7Xgx81ZbYtdqr58sck_g_b33F6HN3NJZHdVRZsxAvMBnCAFDZbXtUg5P1NtVBg"
    static let der =
        "304502200ecbd2824c44dce96c8efd9443f915ccf662ed7831f3565b62d76aaf9f2c724f022100"
        + "e0fdbdf717a1cddcd2591dd55166cc40bcc06708014365b5ed520e4fd4db5506"
    static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
        6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END PUBLIC KEY-----

        """
    /// Apple's own sample: no `alg`, `iat` a string of milliseconds.
    static let sample =
        "eyAia2lkIjogIjhZTDNHM1JSWDciIH0"
        + ".eyAiaXNzIjogIkM4Nk5WOUpYM0QiLCAiaWF0IjogIjE0NTkxNDM1ODA2NTAiIH0"
        + ".MEYCIQDzqyahmH1rz1s-LFNkylXEa2lZ_aOCX4daxxTZkVEGzwIhALvkClnx5m5eAT6Lxw7LZt"
        + "EQcH6JENhJTMArwLf3sXwi"

    @Test(
        arguments: [
            ("bearer " + raw, 0, nil),
            ("Bearer " + raw, 0, nil),
            ("bearer " + input + "." + text(Base64URL.encode(hexBytes(der))), 0, nil),
            (nil, 0, .missingProviderToken),
            ("", 0, .invalidProviderToken),
            ("bearer ", 0, .invalidProviderToken),
            ("basic " + raw, 0, .invalidProviderToken),
            ("bearer nonsense", 0, .invalidProviderToken),
            ("bearer " + input + ".AAAA", 0, .invalidProviderToken),
            ("bearer " + raw.dropLast(2) + "AA", 0, .invalidProviderToken),
            ("bearer " + sample, 0, .invalidProviderToken),
            ("bearer " + raw, 3600, nil),
            ("bearer " + raw, 3601, .expiredProviderToken),
            ("bearer " + raw, -3600, nil),
            ("bearer " + raw, -3601, .invalidProviderToken),
        ] as [(String?, Int, Reason?)])
    func `The published token is accepted until it is too old, and wrong ones are refused`(
        _ authorization: String?, _ later: Int, _ reason: Reason?
    ) throws {
        let key = try VerifyingKey(pem: Array(Self.publicKey.utf8))
        var verifier = ProviderTokenVerifier(keys: [
            ProviderKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ") { message, signature in
                key.verifies(signature, over: message)
            }
        ])
        var credential = ConnectionCredential(hasCertificate: false)
        // Twice: the second time the token is recognised.
        for _ in 0..<2 {
            #expect(
                Self.refusal(authorization, &credential, &verifier, later: later) == reason)
        }
    }

    @Test(
        arguments: [
            (["A1"], nil),
            (["A1", "A1"], nil),
            (["A1", "A2"], .unrelatedKeyIDInToken),
            (["A1", "B1"], .invalidProviderToken),
            (["X1"], .invalidProviderToken),
            (["A1", "X1"], .invalidProviderToken),
            // A connection is bound by its first accepted token, not by a refused one.
            (["X1", "B1"], nil),
        ] as [([String], Reason?)])
    func `A connection is bound to the key, then the team, of its first token`(
        _ names: [String], _ last: Reason?
    ) {
        var verifier = Self.verifier(["A1", "A2", "B1"])
        var credential = ConnectionCredential(hasCertificate: false)
        var reason: Reason?
        for name in names {
            reason = Self.refusal(Self.token(name), &credential, &verifier)
        }
        #expect(reason == last)
    }

    @Test func `A token of a known key and another team is InvalidProviderToken`() {
        var verifier = Self.verifier(["A1"])
        var credential = ConnectionCredential(hasCertificate: false)
        let token = Self.token("A1", team: "B")
        #expect(Self.refusal(token, &credential, &verifier) == .invalidProviderToken)
    }

    @Test func `With a client certificate authorization is ignored`() {
        var verifier = Self.verifier([])
        var credential = ConnectionCredential(hasCertificate: true)
        #expect(Self.refusal(nil, &credential, &verifier) == nil)
        #expect(Self.refusal("bearer nonsense", &credential, &verifier) == nil)
    }

    @Test func `200 different tokens of a key are accepted in turn`() {
        var verifier = Self.verifier(["A1"])
        for age in 0..<200 {
            var credential = ConnectionCredential(hasCertificate: false)
            let token = Self.token("A1", issuedAt: Self.now - UInt64(age))
            #expect(Self.refusal(token, &credential, &verifier) == nil)
        }
    }

    // MARK: Tokens of keys that sign with their own name

    static func verifier(_ names: [String]) -> ProviderTokenVerifier {
        ProviderTokenVerifier(
            keys: names.map { name in
                ProviderKey(keyID: keyID(name), teamID: teamID(name)) { message, signature in
                    signature == Array(name.utf8) + [UInt8](repeating: 0, count: 62)
                }
            })
    }

    private static func keyID(_ name: String) -> String { "KEY00000" + name }
    private static func teamID(_ name: String) -> String { "TEAM00000" + name.prefix(1) }

    static func token(
        _ name: String, team: String? = nil, issuedAt: UInt64 = now
    ) -> String {
        let claims = ProviderTokenClaims(
            keyID: keyID(name), teamID: teamID(team ?? name), issuedAtUnixSeconds: issuedAt)
        let signature = Array(name.utf8) + [UInt8](repeating: 0, count: 62)
        return "bearer "
            + text(
                ProviderTokenClaims.compactToken(
                    signingInput: claims.signingInput, signature: signature))
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    static func refusal(
        _ authorization: String?, _ credential: inout ConnectionCredential,
        _ verifier: inout ProviderTokenVerifier, later: Int = 0
    ) -> Reason? {
        let moment = UInt64(Int(now) + later)
        guard let authorization else {
            return credential.refusal(
                authorization: nil, verifier: &verifier, nowUnixSeconds: moment)
        }
        return Array(authorization.utf8).withBytes {
            credential.refusal(authorization: $0, verifier: &verifier, nowUnixSeconds: moment)
        }
    }
}
