import Foundation
import TestSupport
import Testing

/// A person at a terminal is asked before anything goes to Apple's production.
@Suite(.timeLimit(.minutes(60)))
struct ConfirmationTests {
    /// Runs a command on a terminal of its own and types an answer.
    private static let typing = """
        import os, pty, sys
        child, terminal = pty.fork()
        if child == 0:
            os.execv(sys.argv[2], sys.argv[2:])
        os.write(terminal, sys.argv[1].encode() + b"\\n")
        said = b""
        try:
            while chunk := os.read(terminal, 4096):
                said += chunk
        except OSError:
            pass
        sys.stdout.buffer.write(said)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    @Test("send and probe ask, and anything but yes ends them", arguments: ["send", "probe"])
    func asks(_ command: String) throws {
        let campaign = try Campaign(rows: 3)
        let options = campaign.arguments(
            to: "x",
            without: command == "probe"
                ? ["endpoint", "ca-file", "payload"] : ["endpoint", "ca-file"]
        ).dropFirst()
        for answer in ["no", "", "yess"] {
            let asked = try Subprocess(
                "python3", ["-c", Self.typing, answer, Broadside.path(), command] + options,
                in: campaign.directory)
            let finished = try asked.wait(limit: 30)
            #expect(finished.exitCode == 2, "\(finished.output)")
            #expect(finished.output.contains("Apple's production"), "\(finished.output)")
            #expect(finished.output.contains("api.push.apple.com"))
            #expect(finished.output.contains("nothing was sent"))
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
    }
}
