import BroadsideTestSupport
import Foundation
import Testing

/// `simulate` creates files and never replaces one that it did not make.
@Suite(.timeLimit(.minutes(60)))
struct SimulatorFilesTests {
    /// What a path of somebody else's can be.
    enum Kind: String, CaseIterable {
        case file, emptyFile, link, danglingLink, directory
    }

    /// Names that a fill would create; of the key's name nobody can know.
    static let names = [
        "ca.pem", "server.pem", "server.key", "client.pem", "client.key", "client-single.key",
        "config.json", "other",
    ]

    /// Starts `simulate`, which is to end at once.
    private func simulate(
        _ options: [String], in directory: TemporaryDirectory, umask: String = "022"
    ) throws -> Finished {
        let words = ["timeout", "120", try Broadside.path(), "simulate", "--listen", "127.0.0.1:0"]
        return try Subprocess(
            "sh", ["-c", "umask \(umask); exec \"$@\"", "sh"] + words + options, in: directory
        ).wait()
    }

    /// Everything below a path: kind, mode, time and content of each name.
    private func look(_ path: String) throws -> [String: String] {
        var seen: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            var information = stat()
            lstat("\(path)/\(name)", &information)
            let content = FileManager.default.contents(atPath: "\(path)/\(name)") ?? Data()
            seen[name] =
                "\(information.st_mode) \(information.st_mtim.tv_nsec) \(content.base64EncodedString())"
        }
        return seen
    }

    @Test(arguments: names, Kind.allCases)
    func `A file of another program in the state directory ends the start and is kept`(
        name: String, kind: Kind
    ) throws {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        let path = "\(state)/\(name)"
        try FileManager.default.createDirectory(
            atPath: state, withIntermediateDirectories: true)
        let elsewhere = try directory.write("a user's own key\n", to: "elsewhere")
        switch kind {
        case .file: try directory.write("a user's own key\n", to: "state/\(name)")
        case .emptyFile: try directory.write("", to: "state/\(name)")
        case .link: try #require(symlink(elsewhere, path) == 0)
        case .danglingLink: try #require(symlink("\(directory.path)/nowhere", path) == 0)
        case .directory: try #require(mkdir(path, 0o755) == 0)
        }
        if kind == .file { try #require(chmod(path, 0o640) == 0) }
        let before = try look(state)
        let ended = try simulate(["--state", state], in: directory)
        #expect(ended.exitCode == 2, "\(ended.errors)")
        #expect(ended.errorLines.count == 1 && ended.errors.contains(path), "\(ended.errors)")
        #expect(try look(state) == before)
        #expect(try String(contentsOfFile: elsewhere, encoding: .utf8) == "a user's own key\n")
        #expect(access("\(directory.path)/nowhere", F_OK) != 0)
    }

    @Test func `A directory in use for something else is not filled; hidden files do not count`()
        throws
    {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        try FileManager.default.createDirectory(
            atPath: "\(state)/lost+found", withIntermediateDirectories: true)
        try directory.write("*\n", to: "state/.gitignore")
        try directory.write("127.0.0.1 localhost\n", to: "state/hosts")
        let before = try look(state)
        let options = ["--state", state, "--journal", "\(directory.path)/missing/journal"]
        let refused = try simulate(options, in: directory)
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("such as \(state)/hosts: name a new or empty directory"))
        #expect(try look(state) == before)
        try FileManager.default.removeItem(atPath: "\(state)/hosts")
        let filled = try simulate(options, in: directory)
        #expect(filled.errors.contains("missing/journal"), "\(filled.errors)")
        #expect(FileManager.default.fileExists(atPath: "\(state)/config.json"))
    }

    @Test(arguments: ["000", "077", "022"])
    func `A state directory is reused, and its private files are private`(umask: String) throws {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        // An output that can't be written ends the start behind the state directory.
        let bad = ["--journal", "\(directory.path)/missing/journal"]
        let options = ["--state", state, "--issue-tokens", "50"]
        let first = try simulate(options + bad, in: directory, umask: umask)
        #expect(first.exitCode == 2 && first.errors.contains("missing/journal"))
        let made = try look(state)
        #expect(made.count > 20)
        for (name, line) in made where name != "other" {
            let isPrivate = name.hasSuffix(".key") || name.hasSuffix(".p8")
            let mode = Int(line.prefix { $0 != " " })! & 0o777
            #expect(mode == (isPrivate ? 0o600 : 0o644), "\(name)")
        }
        for name in ["client-single", "other/client-development-by-name"] {
            #expect(made["\(name).pem"] != nil && made["\(name).key"] != nil)
        }
        let second = try simulate(options + bad, in: directory, umask: "000")
        #expect(second.exitCode == 2 && second.errors.contains("missing/journal"))
        #expect(try look(state) == made)
    }

    @Test func `Lists of issued tokens replace only unchanged ones`() throws {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        let bad = ["--journal", "\(directory.path)/missing/journal"]
        func issue(_ count: Int, _ more: [String] = []) throws -> Finished {
            try simulate(
                ["--state", state, "--issue-tokens", "\(count)"] + more + bad, in: directory)
        }
        func lines() throws -> [String] {
            try String(contentsOfFile: "\(state)/tokens.txt", encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
        #expect(try issue(100).errors.contains("missing/journal"))
        let hundred = try lines()
        #expect(try issue(30).errors.contains("missing/journal"))
        #expect(try lines() == Array(hundred[..<30]))
        #expect(try issue(200, ["--environment", "development"]).errors.contains("missing"))
        #expect(try Set(lines()).intersection(hundred).isEmpty)
        #expect(try issue(100).errors.contains("missing/journal"))
        #expect(try lines() == hundred)

        let text = hundred.joined(separator: "\n") + "\n"
        for changed in [
            "somebody's own list\n", text + "00fc13ad\n", String(text.dropLast()),
            hundred.dropFirst().joined(separator: "\n") + "\n", text.uppercased(),
        ] {
            try directory.write(changed, to: "state/tokens.txt")
            let before = try look(state)
            let ended = try issue(200)
            #expect(ended.exitCode == 2 && ended.errors.contains("tokens.txt"), "\(ended.errors)")
            #expect(try look(state) == before)
        }
        let elsewhere = try directory.write(text, to: "elsewhere")
        try FileManager.default.removeItem(atPath: "\(state)/tokens.txt")
        try #require(symlink(elsewhere, "\(state)/tokens.txt") == 0)
        #expect(try issue(200).exitCode == 2)
        #expect(try String(contentsOfFile: elsewhere, encoding: .utf8) == text)
    }

    @Test
    func `Outputs of simulate replace neither inputs nor files that are not sockets`() throws {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/state"
        let list = try directory.write("abcd\n", to: "offline.txt")
        let own = try directory.write("a user's own file\n", to: "own")
        #expect(
            try simulate(
                ["--state", state, "--control", "\(directory.path)/missing/x"], in: directory
            ).exitCode == 2)
        try #require(link("\(state)/server.key", "\(directory.path)/hard") == 0)
        try #require(symlink("\(state)/ca.pem", "\(directory.path)/soft") == 0)
        let before = try look(directory.path).filter { !$0.key.contains("std") }
        for options in [
            ["--journal", "\(state)/client.key"], ["--deliveries", "\(state)/config.json"],
            ["--journal", "\(directory.path)/hard"], ["--journal", "\(directory.path)/soft"],
            ["--offline", list, "--deliveries", list], ["--saving-power", list, "--journal", list],
            ["--journal", "\(directory.path)/x", "--deliveries", "\(directory.path)/x"],
            ["--control", own], ["--control", "\(state)/server.key"],
            ["--record", "\(state)/client.key"], ["--replay", list, "--record", list],
        ] {
            let ended = try simulate(["--state", state] + options, in: directory)
            #expect(ended.exitCode == 2, "\(options): \(ended.errors)")
            #expect(ended.errors.contains(options.last!), "\(ended.errors)")
        }
        #expect(try look(directory.path).filter { !$0.key.contains("std") } == before)
    }

    @Test(
        arguments: [
            (["--control-listen", "nowhere"], "--control-listen 'nowhere' is not an address"),
            (["--control-listen", "127.0.0.1:0", "--fast"], "drop --control-listen, or --fast"),
            (["--record", "x", "--fast"], "drop --record, or --fast"),
            (["--replay", "x", "--fast"], "drop --replay, or --fast"),
            (["--record", "-"], "--record -: standard output is not supported: name a file"),
            (["--journal", "-"], "--journal -: standard output is not supported"),
            (["--deliveries", "-"], "--deliveries -: standard output is not supported"),
            (["--replay", "missing"], "--replay missing: No such file"),
            (["--record", "missing/x"], "--record missing/x: No such file"),
            (["--keep-requests", "-1"], "--keep-requests"),
            (["--keep-requests", "1000001"], "--keep-requests"),
        ])
    func `A wrong option for tests of other programs is exit code 2 that names it`(
        _ options: [String], message: String
    ) throws {
        let directory = try TemporaryDirectory()
        let ended = try simulate(
            ["--state", "\(directory.path)/state"] + options, in: directory)
        #expect(ended.exitCode == 2 && ended.errors.contains(message), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
        #expect(FileManager.default.fileExists(atPath: "\(directory.path)/x") == false)
    }
}
