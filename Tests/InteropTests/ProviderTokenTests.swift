import BroadsideTestSupport
import Foundation
import Testing

/// The provider token as it arrives, checked with OpenSSL's command line.
@Suite(.timeLimit(.minutes(60)))
struct ProviderTokenTests {
    @Test func `The provider token is an ES256 JWT that openssl verifies`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 2)
        let before = Date().timeIntervalSince1970
        let sent = try campaign.send(to: server.endpoint, ["--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let fields = try #require(try server.events().compactMap(\.fields).first)
        let value = try #require(fields.first { $0.name == "authorization" }?.value)
        try #require(value.hasPrefix("bearer "))
        let parts = value.dropFirst(7).split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3)

        let header = try object(decoded(parts[0]))
        #expect(header["alg"] as? String == "ES256")
        #expect(header["kid"] as? String == Campaign.keyID)
        let claims = try object(decoded(parts[1]))
        #expect(claims["iss"] as? String == Campaign.teamID)
        // A number, not a text, in seconds.
        let issued = try #require(claims["iat"] as? Double)
        // The start of a window of half an hour; five minutes into the next one another is used.
        #expect(issued.truncatingRemainder(dividingBy: 1800) == 0)
        #expect(issued > before - 2101 && issued <= Date().timeIntervalSince1970 - 300)
        #expect(String(decoding: try decoded(parts[1]), as: UTF8.self).contains("\"iat\":1"))

        // JOSE's raw form: 64 bytes, R and S (RFC 7518, section 3.4).
        let raw = try decoded(parts[2])
        try #require(raw.count == 64)
        let input = Array("\(parts[0]).\(parts[1])".utf8)
        #expect(try opensslAccepts(derSignature(raw), of: input, campaign))
        #expect(try !opensslAccepts(derSignature(raw), of: input + [0x20], campaign))
    }

    private func decoded(_ text: Substring) throws -> Data {
        #expect(!text.contains { "+/=".contains($0) })
        var base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        while base64.count % 4 != 0 { base64.append("=") }
        return try #require(Data(base64Encoded: String(base64)))
    }

    private func object(_ json: Data) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
    }

    /// SEQUENCE { INTEGER r, INTEGER s }, which is what openssl reads.
    private func derSignature(_ raw: Data) -> [UInt8] {
        func integer(_ bytes: Data) -> [UInt8] {
            var bytes = Array(bytes.drop { $0 == 0 })
            if bytes.isEmpty || bytes[0] >= 0x80 { bytes.insert(0, at: 0) }
            return [2, UInt8(bytes.count)] + bytes
        }
        let body = integer(raw.prefix(32)) + integer(raw.suffix(32))
        return [0x30, UInt8(body.count)] + body
    }

    private func opensslAccepts(
        _ signature: [UInt8], of input: [UInt8], _ campaign: Campaign
    ) throws -> Bool {
        let directory = campaign.directory
        let process = try Subprocess(
            "openssl",
            [
                "dgst", "-sha256", "-verify", campaign.authority.authPublicKey, "-signature",
                directory.write(signature, to: "signature"), directory.write(input, to: "input"),
            ], in: directory)
        return try process.wait(limit: 120).exitCode == 0
    }
}
