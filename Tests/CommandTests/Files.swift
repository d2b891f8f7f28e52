import BroadsideTestSupport
import Foundation

/// Files that are wrong in many ways, made once for all tests.
final class Files: Sendable {
    let campaign: Campaign
    /// Where outputs of the command go.
    let scratch: TemporaryDirectory
    /// A server that writes down each byte it gets: nobody may talk to it.
    nonisolated(unsafe) let server: RecordingServer

    private static let made = Result { try Files() }

    static func shared() throws -> Files { try made.get() }

    private init() throws {
        campaign = try Campaign(rows: 10)
        scratch = try TemporaryDirectory()
        server = try RecordingServer("plain", ["--answer", "silence"]).endingAtExit()
        let directory = campaign.directory
        let path = directory.path
        try FileManager.default.createDirectory(
            atPath: "\(path)/directory", withIntermediateDirectories: false)
        try FileManager.default.createDirectory(
            atPath: "\(path)/strange", withIntermediateDirectories: false)
        for (name, text) in [
            ("strange/diary", "Dear diary"), ("no.gz", "aabb\n"), ("no.zst", "aabb\n"),
            ("empty", ""),
            ("garbage", "-----BEGIN PRIVATE KEY-----\nbm8=\n-----END PRIVATE KEY-----\n"),
            ("users", "user,device token\nx,\(String(repeating: "ab", count: 32))\n"),
            ("bad-json", "{\"aps\":\n  {\"alert\" \"x\"}}"),
            ("umlaut-json", "{\"aps\":\"äöü\" ,}"),
            ("array", "[1]"), ("cut-off", "{\"aps\":{\"alert\":\"x\""),
            ("byte-order-mark", "\u{feff}{\"aps\":{}}"),
            ("large", Self.payload(count: 4097)), ("fits", Self.payload(count: 4096)),
            ("huge", Self.payload(count: 3_000_000)), ("list", "aabb\nccdd\n"),
            ("people.csv", "token,name\naabb,Jo\n"), ("t-unclosed", "{\"a\":1,\n\"b\": \"x{{y\"}"),
            ("t-key", #"{"{{n}}":1}"#), ("t-type", #"{"a":"x{{n:int}}"}"#),
            ("t-nested", #"{"aps":{"alert":"{{name|dear {{title|friend}}}}"}}"#),
            ("t-float", #"{"a":"{{n:float}}"}"#), ("t-default", #"{"a":"{{n:int|x}}"}"#),
            ("t-name", #"{"aps":{"alert":"{{name}}"}}"#),
            ("t-nmae", "{\"aps\":\n   {\"alert\":\"x{{nmae}}\"}}"),
            ("t-large", Self.payload(count: 4097).dropLast() + #","b":"{{name}}"}"#),
            ("trailing-comma", #"{"aps":{"alert":"x",}}"#),
            ("bars.csv", "token|name\naabb|Jo\n"), ("tabs.csv", "token\tname\naabb\tJo\n"),
            ("device.csv", "id,device\n1,aabb\n"),
            ("device-token.csv", "id,Device Token\n1,aabb\n"), ("by/pt.json", #"{"a" 1}"#),
            ("by-good/pt.json", #"{"aps":{"alert":"x"}}"#),
            ("AuthKey_ABC123DEFG.p8", ""),
        ] {
            try FileManager.default.createDirectory(
                atPath: ("\(path)/\(name)" as NSString).deletingLastPathComponent,
                withIntermediateDirectories: true)
            try directory.write(text, to: name)
        }
        for (index, file) in MalformedRequest.campaignTexts.enumerated() {
            try directory.write(file.text, to: "c-\(index)")
        }
        try directory.write(
            [0xff, 0xfe] + "aabb\n".utf8.flatMap { [$0, 0] }, to: "utf16")
        // The beginning of a PKCS#12 file (RFC 7292, section 4): a sequence with version 3.
        try directory.write(
            [0x30, 18, 2, 1, 3, 0x30, 13] + [UInt8](repeating: 5, count: 13), to: "key.p12")
        // A frame's header (RFC 8878, section 3.1.1.1) with a window of 16 MiB, and an empty block.
        try directory.write([0x28, 0xb5, 0x2f, 0xfd, 0, 14 << 3, 1, 0, 0], to: "far.zst")
        for line in [
            "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out \(path)/rsa",
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out \(path)/p384",
            "pkcs8 -topk8 -in \(campaign.authority.authKey) -passout pass:x -out \(path)/encrypted",
            "pkey -in \(campaign.authority.authKey) -pubout -out \(path)/public",
        ] {
            try Subprocess.run(
                "openssl", line.split(separator: " ").map(String.init), in: scratch)
        }
    }

    /// A payload of so many bytes.
    static func payload(count: Int) -> String {
        let frame = #"{"aps":{"alert":""}}"#
        let text = String(repeating: "x", count: count - frame.utf8.count)
        return #"{"aps":{"alert":"\#(text)"}}"#
    }

    /// Puts the path of a file in the place of `@name`.
    func expand(_ argument: String) -> String {
        // In front, or behind COLUMN=.
        guard argument.hasPrefix("@") || argument.contains("=@") else { return argument }
        return argument.replacingOccurrences(of: "@", with: "\(campaign.directory.path)/")
    }
}
