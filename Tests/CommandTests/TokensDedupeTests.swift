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

    @Test func `dedupe --by --newest keeps each user's newest row, as Python reads the list`()
        throws
    {
        var random = SeededRandom(seed: 46)
        var text = "user,token,\"seen, at\"\r\n"
        let users = ["7", "07", "\"a \"\"b\"\"\"", "Ü", "", "\"7\"", "x y"]
        for row in 0..<2_000 {
            let time = [
                "17000\(random.next() % 100_000)", "2024-01-0\(random.next() % 9 + 1)T00:00:00Z",
                "soon", "",
            ][Int(random.next() % 4)]
            let token = row % 17 == 3 ? "none" : String(format: "%08x", random.next() % 500)
            text += "\(users[Int(random.next() % 7)]),\(token),\(time)\r\n"
        }
        let found = try dedupe(text, ["--by", "user", "--newest", "seen, at"], name: "list.csv")
        #expect(found.finished.exitCode == 0, "\(found.finished.errors)")
        let directory = try TemporaryDirectory()
        let list = try directory.write(text, to: "list.csv")
        let script = """
            import csv, datetime, io, sys
            data = open(sys.argv[1], newline="", encoding="utf-8").read()
            lines = data.split("\\r\\n")[:-1]
            rows = list(csv.reader(io.StringIO(data, newline="")))[1:]
            def time(text):
                if text.isdigit(): return float(text)
                try: return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
                except ValueError: return float("-inf")
            best = {}
            for number, (user, token, at) in enumerate(rows):
                if token == "none" or user == "": continue
                if user not in best or time(at) > time(rows[best[user]][2]): best[user] = number
            kept = [number for number, (user, token, at) in enumerate(rows)
                    if token == "none" or user == "" or best[user] == number]
            sys.stdout.buffer.write("".join(line + "\\r\\n" for line in
                [lines[0]] + [lines[1 + number] for number in kept]).encode())
            """
        let judged = try Subprocess("python3", ["-c", script, list], in: directory)
            .wait(limit: 60)
        #expect(judged.exitCode == 0, "\(judged.errors)")
        #expect(found.output == judged.output, "\(found.finished.errors)")
        #expect(found.output.count < text.count / 3)
    }

    @Test
    func `dedupe --by without --newest keeps each value's first row, and refuses an unknown key`()
        throws
    {
        let list = """
            {"token": "aabb", "user": {"id": 7}}
            {"token": "ccdd", "user": {"id": null}}
            {"token": "eeff", "user": {"id": "7"}}
            {"token": "aaff"}

            """
        let found = try dedupe(list, ["--by", "user.id"], name: "list.jsonl")
        #expect(found.finished.exitCode == 0, "\(found.finished.errors)")
        #expect(!found.output.contains("eeff") && found.output.split(separator: "\n").count == 3)
        #expect(
            found.finished.errors.contains("without a value in 'user.id': 2"),
            "\(found.finished.errors)")
        for (more, says) in [
            (["--by", "user.name"], "--by 'user.name': no row of "),
            (["--by", "user.id", "--newest", "at"], "--newest 'at': no row of "),
            (["--newest", "at", "--registered-column", "at"], "mean the same"),
        ] {
            let refused = try dedupe(list, more, name: "list.jsonl")
            #expect(refused.finished.exitCode == 2, "\(more)")
            #expect(refused.finished.errors.contains(says), "\(refused.finished.errors)")
            #expect(refused.output == "none")
        }
    }

    @Test(arguments: [
        ("list.txt", "", "contains no rows"),
        ("list.csv", "token,name\nzz,a\nyy,b\n", "contains no device token"),
    ])
    func `dedupe refuses a list without a device token`(
        name: String, text: String, says: String
    ) throws {
        let refused = try dedupe(text, name: name)
        #expect(refused.finished.exitCode == 2, "\(refused.finished.errors)")
        #expect(refused.finished.errors.contains(says), "\(refused.finished.errors)")
        #expect(refused.output == "none")
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
