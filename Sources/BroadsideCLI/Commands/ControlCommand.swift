import Broadside
import Support

/// `broadside control`: a word to a process that listens on a control socket.
enum ControlCommand {
    static let description: CommandDescription = CommandDescription(
        name: "control",
        summary: "talk to a running send: PATH status | rate N | pause | resume | stop",
        usage: "PATH WORD... [--json]",
        discussion: """
            Sends one line to a running process that was started with --control PATH, and prints its
            response. A send understands:

            status   how far it is
            rate N   at most N requests per second from now on; rate unlimited
            pause    no new requests; those in flight are answered
            resume   continue after a pause
            stop     end in order, as after Ctrl-C: responses are awaited, --resume
                     continues

            Exit codes: 0 done; 1 nothing listens on PATH; 2 the request is wrong.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [.init("json", .flag, nil, "the answer as it came: one line of JSON")])
        ],
        examples: [
            .init(
                "Show the progress of a run that was started with --control run.sock",
                "broadside control run.sock status"),
            .init(
                "Slow it down to 2,000 requests per second",
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
