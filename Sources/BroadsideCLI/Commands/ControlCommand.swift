import Broadside
import Support

/// `broadside control`: a word to a process that listens on a control socket.
enum ControlCommand {
    static let description: CommandDescription = CommandDescription(
        name: "control",
        summary: "talk to a running send: PATH status | rate N | pause | resume | stop",
        usage: "PATH WORD... [--json]",
        discussion: """
            Says one line to a running process that was started with --control PATH, and prints its
            answer. A send understands:

            status   how it goes on
            rate N   at most N requests a second from now on; rate unlimited
            pause    no new requests; those in flight are answered
            resume   go on after a pause
            stop     end in order, as after Ctrl-C: answers are awaited, --resume goes on

            Exit codes: 0 done; 1 nobody listens on PATH; 2 the request is wrong.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [.init("json", .flag, nil, "the answer as it came: one line of JSON")])
        ],
        examples: [
            .init(
                "See how a run goes on that was started with --control run.sock",
                "broadside control run.sock status"),
            .init(
                "Slow it down to 2,000 requests a second",
                "broadside control run.sock rate 2000"),
            .init("End it in order", "broadside control run.sock stop"),
        ],
        wordsAfterPath: ["status", "rate", "pause", "resume", "stop"],
        run: { (arguments) throws(BroadsideError) in
            guard let path = arguments.words.first, arguments.words.count > 1 else {
                throw .request(
                    "control wants the socket's path and a request: broadside control PATH status")
            }
            let request = arguments.words.dropFirst().joined(separator: " ")
            guard !request.contains("\n") else {
                throw .request("a request is one line: leave the line end out")
            }
            let answer = try ControlClient.ask(path: path, request: request)
            let error = ControlClient.error(in: answer)
            if arguments.has("json") {
                print(answer)
            } else if error == nil {
                print(ControlClient.text(of: answer), terminator: "")
            }
            if let error {
                throw BroadsideError(error, exitCode: 2)
            }
            return 0
        })
}
