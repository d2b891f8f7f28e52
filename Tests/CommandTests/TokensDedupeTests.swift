import BroadsideTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(60)))
struct TokensDedupeTests {
    private func dedupe(
        _ text: String, _ more: [String] = [], name: String = "list.txt"
    ) throws -> (output: String, finished: Finished) {
        let directory = try TemporaryDirectory()
        let file = try directory.write(text, to: name)
        let finished = try Broadside.run(
            ["tokens", "dedupe", "--tokens", file, "--output", "\(directory.path)/out"] + more,
            in: directory, limit: 120)
        let output = FileManager.default.contents(atPath: "\(directory.path)/out")
        return (output.map { String(decoding: $0, as: UTF8.self) } ?? "none", finished)
    }

    @Test func `dedupe keeps the first row of each token, byte for byte and in order`() throws {
        let found = try dedupe("aabb\r\n\nzz\n AABB \nccdd\nzz\n<ccdd>\n\neeff\naabb")
        #expect(found.finished.exitCode == 0, "\(found.finished.errors)")
        #expect(found.output == "aabb\r\n\nzz\nccdd\nzz\n\neeff\n")
        #expect(found.finished.errors.contains("removed      3"), "\(found.finished.errors)")
        #expect(found.finished.errors.contains("without a device token: 2"))
    }

    @Test func `dedupe equals awk's first of each over many windows`() throws {
        let tokens = String(decoding: DeviceTokens(count: 30_000).list(), as: UTF8.self)
            .split(separator: "\n").map(String.init)
        var random = SystemRandomNumberGenerator()
        var lines = tokens
        for _ in 0..<3_000 {
            lines.insert(tokens.randomElement(using: &random)!, at: .random(in: 0..<lines.count))
        }
        var seen: Set<String> = []
        let expected = lines.filter { seen.insert($0).inserted }
        let found = try dedupe(lines.joined(separator: "\n") + "\n")
        #expect(found.output == expected.joined(separator: "\n") + "\n")
    }

    @Test
    func `dedupe --registered-column keeps the newest row, and an unreadable time is the oldest`()
        throws
    {
        let list = """
            \u{feff}token,at,note
            aabb,1700000000,"old
            row"
            aabb,2024-01-01T00:00:00Z,new
            aabb,soon,strange
            ccdd,never,only
            eeff,5,first
            eeff,5,second

            """
        let found = try dedupe(list, ["--registered-column", "at"], name: "list.csv")
        #expect(found.finished.exitCode == 0, "\(found.finished.errors)")
        #expect(
            found.output
                == "\u{feff}token,at,note\naabb,2024-01-01T00:00:00Z,new\nccdd,never,only\n"
                + "eeff,5,first\n")
        // 1970-01-01 is no time at which a device can have registered.
        #expect(found.finished.errors.contains("unreadable: 4, the first on line 5"))
    }

    @Test func `dedupe --registered-column refuses a column without readable times`() throws {
        let list = "token,at\naabb,785000000\naabb,785000001\nccdd,0\n"
        let refused = try dedupe(list, ["--registered-column", "at"], name: "list.csv")
        #expect(refused.finished.exitCode == 2, "\(refused.finished.errors)")
        #expect(refused.finished.errors.contains("'at': no row of "), "\(refused.finished.errors)")
        let once = try dedupe(
            "token,at\naabb,785000000\nccdd,0\n", ["--registered-column", "at"], name: "once.csv")
        #expect(once.finished.exitCode == 0, "\(once.finished.errors)")
    }

    @Test func `dedupe never writes over its list, and a failure leaves nothing`() throws {
        let directory = try TemporaryDirectory()
        let list = try directory.write("aabb\naabb\n", to: "list.txt")
        let twice = try directory.write("token,a,a\naabb,1,2\n", to: "twice.csv")
        let out = "\(directory.path)/out"
        for (arguments, says) in [
            (["--tokens", list, "--output", list], "is the file that --tokens reads"),
            (["--tokens", list, "--output", "-"], "--output -"),
            (["--tokens", list], "--output is missing"),
            (["--tokens", twice, "--output", out], "two columns named 'a'"),
            (["--tokens", list, "--output", out, "--json"], "--json"),
            (["--tokens", list, "--output", out, "--registered-column", "at"], "'at'"),
        ] {
            let finished = try Broadside.run(
                ["tokens", "dedupe"] + arguments, in: directory, limit: 120)
            #expect(finished.exitCode == 2 && finished.output.isEmpty)
            #expect(finished.errorLines.count == 1 && finished.errors.contains(says))
        }
        let names = try directory.names(in: directory.path)
        #expect(!names.contains { $0.hasPrefix("out") || $0.hasSuffix(".new") }, "\(names)")
    }
}
