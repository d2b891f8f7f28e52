import BroadsideTestSupport
import Foundation
import Testing

/// A thousand devices of which three hundred are offline, three notifications each, and what each
/// of them has got in the end, against a table that is worked out here.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct StoreAndForwardTests {
    static let devices = 1000
    /// The offline ones: the first of each ten, and the fourth and the eighth.
    static func isOffline(_ row: Int) -> Bool { row % 10 == 0 || row % 10 == 3 || row % 10 == 7 }

    /// One of the three notifications.
    struct Notification: Sendable {
        var collapse: String?
        /// `0`, or `past` or `future` of the moment at which devices come online; `early` is past
        /// as well, maybe before it is taken; nil: not sent.
        var expiration: String?
    }

    struct Plan: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var options: [String] = []
        let notifications: [Notification]
        /// Which of the three an offline device gets, by hand, in this order.
        let forwarded: [Int]
    }

    static let byIdentifier = ["--store-by", "collapse-id"]
    static let plans = [
        Plan(
            testDescription: "the newest of an app",
            notifications: [.init(), .init(), .init()], forwarded: [2]),
        Plan(
            testDescription: "a collapse identifier makes no second place",
            notifications: [.init(collapse: "a"), .init(collapse: "b"), .init()], forwarded: [2]),
        Plan(
            testDescription: "the newest of each collapse identifier, if asked for",
            options: byIdentifier,
            notifications: [.init(collapse: "a"), .init(collapse: "b"), .init(collapse: "a")],
            forwarded: [1, 2]),
        Plan(
            testDescription: "with and without a collapse identifier, if asked for",
            options: byIdentifier,
            notifications: [.init(collapse: "x,\"y\""), .init(), .init()], forwarded: [0, 2]),
        Plan(
            testDescription: "0 is not stored, and drives nothing out",
            notifications: [.init(), .init(expiration: "0"), .init(expiration: "0")],
            forwarded: [0]),
        Plan(
            testDescription: "what is past is not delivered", options: byIdentifier,
            notifications: [
                .init(collapse: "a", expiration: "early"), .init(expiration: "future"),
                .init(collapse: "b", expiration: "early"),
            ], forwarded: [1]),
        Plan(
            testDescription: "the newest drives the older out, and expires itself",
            notifications: [
                .init(expiration: "future"), .init(), .init(expiration: "past"),
            ], forwarded: []),
    ]

    @Test(arguments: plans)
    func `Stored deliveries equal the documented table`(_ plan: Plan) throws {
        let directory = try TemporaryDirectory()
        let tokens = DeviceTokens(count: Self.devices)
        let offline = (0..<Self.devices).filter(Self.isOffline)
        try #require(offline.count == 300)
        let file = try directory.write(
            offline.map { tokens.token($0).uppercased() + "\n" }.joined(), to: "offline.txt")
        let (deliveries, control) = (directory.path + "/deliveries.csv", directory.path + "/socket")
        let server = try LocalAPNs(
            [
                "--offline", file, "--deliveries", deliveries, "--control", control,
            ] + plan.options)
        let list = try directory.write(tokens.list(), to: "tokens.txt")

        var latestPast = 0
        var identifiers: [[String: String]] = []
        var expirations: [String] = []
        for notification in plan.notifications {
            var options = ["--tokens", list, "--connections", "2"]
            if let collapse = notification.collapse { options += ["--collapse-id", collapse] }
            var expiration = notification.expiration ?? ""
            let now = Int(Date().timeIntervalSince1970)
            if expiration == "early" || expiration == "past" {
                // What is to drive others out has to be taken before its time passes.
                latestPast = now + (expiration == "past" ? 6 : 1)
                expiration = "\(latestPast)"
            }
            if expiration == "future" { expiration = "\(now + 3600)" }
            if !expiration.isEmpty { options += ["--expiration", expiration] }
            expirations.append(expiration)
            let campaign = try Campaign(rows: 1)
            let sent = try campaign.send(to: server.endpoint, options)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            var byToken: [String: String] = [:]
            for row in try campaign.export(["--tokens", list]) {
                byToken[row.token] = row.identifier
            }
            try #require(byToken.count == Self.devices)
            identifiers.append(byToken)
        }
        while Int(Date().timeIntervalSince1970) <= latestPast { usleep(50_000) }
        let commands = offline.map { "online \(tokens.token($0))" } + ["status"]
        let answers = try ControlSocket.ask(control, commands, in: directory)
        #expect(answers.dropLast().allSatisfy { $0.contains("\"ok\":true") })
        let got = "\"delivered\":\(plan.forwarded.count)}"
        #expect(answers.dropLast().allSatisfy { $0.contains(got) })
        _ = try server.finish()

        let seen = try Self.rows(ofFile: deliveries)
        let count = seen.values.reduce(0) { $0 + $1.count }
        #expect(count == 2100 + 300 * plan.forwarded.count)
        #expect(seen == Self.expected(plan, tokens, identifiers, expirations))

        // And the totals that the control socket tells.
        let status = try ControlSocket.object(answers.last)
        #expect(status["stored"] as? Int == 0)
        #expect(status["delivered"] as? Int == count)
        let lost = ["coalesced", "expired", "discarded", "dropped", "held"].map {
            status[$0] as? Int ?? -1
        }
        #expect(lost.reduce(0, +) == 3000 - count, "\(status)")
        #expect(lost[3] == 0 && lost[4] == 0)
    }

    /// The table, row by row: who got which of the three, how, in order.
    private static func expected(
        _ plan: Plan, _ tokens: DeviceTokens, _ identifiers: [[String: String]],
        _ expirations: [String]
    ) -> [String: [String]] {
        var expected: [String: [String]] = [:]
        for row in 0..<devices {
            let token = tokens.token(row)
            let from = isOffline(row) ? "store" : "push"
            let numbers = isOffline(row) ? plan.forwarded : [0, 1, 2]
            let lines = numbers.map { number in
                [
                    token, Campaign.topic, identifiers[number][token] ?? "?",
                    quoted(plan.notifications[number].collapse ?? ""), expirations[number],
                    from,
                ].joined(separator: ",")
            }
            if !lines.isEmpty { expected[token] = lines }
        }
        return expected
    }

    /// The rows of a deliveries file by token.
    private static func rows(ofFile path: String) throws -> [String: [String]] {
        var seen: [String: [String]] = [:]
        var lines = try String(contentsOfFile: path, encoding: .utf8)
            .split(separator: "\n").map(String.init)
        #expect(
            lines.removeFirst() == "t_us,token,topic,apns_id,collapse_id,expiration,from")
        for line in lines {
            let row = String(line.drop { $0 != "," }.dropFirst())
            seen[String(row.prefix { $0 != "," }), default: []].append(row)
        }
        return seen
    }

    private static func quoted(_ text: String) -> String {
        text.contains("\"") ? "\"\(text.replacing("\"", with: "\"\""))\"" : text
    }

    @Test func `A device that saves power gets priority 10 at once and others in groups`() throws {
        let directory = try TemporaryDirectory()
        let (deliveries, control) = (directory.path + "/deliveries.csv", directory.path + "/socket")
        let tokens = DeviceTokens(count: 40)
        let file = try directory.write(
            (0..<20).map { tokens.token($0) + "\n" }.joined(), to: "saving.txt")
        let server = try LocalAPNs([
            "--saving-power", file, "--group-for", "2s", "--deliveries", deliveries, "--control",
            control,
        ])
        let list = try directory.write(tokens.list(), to: "tokens.txt")
        for priority in ["5", "10", "1", "5"] {
            let campaign = try Campaign(rows: 1)
            let sent = try campaign.send(
                to: server.endpoint, ["--tokens", list, "--priority", priority])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        // The one that wakes, before or after the group's time, gets all that is held.
        let woken = tokens.token(0)
        _ = try ControlSocket.ask(control, ["awake \(woken)"], in: directory)
        var delivered = 0
        for _ in 0..<600 where delivered < 160 {
            let status = try ControlSocket.ask(control, ["status"], in: directory)
            delivered = try ControlSocket.object(status.last)["delivered"] as? Int ?? -1
            usleep(50_000)
        }
        #expect(delivered == 160)
        let taken = try server.finish()
        let lines = try String(contentsOfFile: deliveries, encoding: .utf8).split(separator: "\n")
            .dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        for row in 0..<40 {
            let own = lines.filter { $0[1] == tokens.token(row) }
            let pushed = own.filter { $0[6] == "push" }
            #expect(own.count == 4 && pushed.count == (row < 20 ? 1 : 4))
            guard row < 20 else { continue }
            let grouped = own.filter { $0[6] == "group" }
            // Late, and together if they came in time for one group.
            let times = Set(grouped.compactMap { UInt64($0[0]) })
            let first = try #require(times.min())
            #expect(grouped.count == 3 && times.count <= 2)
            let came = taken.filter { $0[4] == tokens.token(row) }.compactMap { UInt64($0[0]) }
            let earliest = try #require(came.min())
            if row > 0 { #expect(first >= earliest + 1_900_000) }
        }
    }

    @Test func `The share of offline devices is the documented function`() throws {
        let directory = try TemporaryDirectory()
        let deliveries = directory.path + "/deliveries.csv"
        let server = try LocalAPNs([
            "--offline", "0.3", "--seed", "7", "--deliveries", deliveries,
        ])
        let campaign = try Campaign(rows: 500)
        let sent = try campaign.send(to: server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        _ = try server.finish()
        let online = (0..<500).map(campaign.tokens.token).filter { token in
            let head = UInt64(token.prefix(16), radix: 16)!
            let u = Double(Self.splitmix64(Self.splitmix64(head ^ 7))) / 0x1p64
            return u >= 0.3
        }
        let got = try String(contentsOfFile: deliveries, encoding: .utf8)
            .split(separator: "\n").dropFirst().map { String($0.split(separator: ",")[1]) }
        #expect(Set(got) == Set(online))
        #expect(got.count == online.count && online.count > 250 && online.count < 450)
    }

    private static func splitmix64(_ seed: UInt64) -> UInt64 {
        var z = seed &+ 0x9e37_79b9_7f4a_7c15
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// A simulator's control socket, by Python's socket module.
enum ControlSocket {
    private static let program = """
        import socket, sys
        path, file = sys.argv[1:3]
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(20)
        s.connect(path)
        answers = s.makefile("r")
        for line in open(file):
            s.sendall(line.encode())
            print(answers.readline(), end="")
        """

    /// One line for each command, all on one connection.
    static func ask(
        _ path: String, _ commands: [String], in directory: TemporaryDirectory
    ) throws -> [String] {
        let script = try directory.write(program, to: "control.py")
        let file = try directory.write(commands.joined(separator: "\n") + "\n", to: "commands")
        let ended = try Subprocess("python3", [script, path, file], in: directory).wait(limit: 30)
        guard ended.exitCode == 0 else { throw TestFailure("control.py: \(ended.errors)") }
        return ended.output.split(separator: "\n").map(String.init)
    }

    static func object(_ line: String?) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data((line ?? "").utf8))
        return object as? [String: Any] ?? [:]
    }
}
