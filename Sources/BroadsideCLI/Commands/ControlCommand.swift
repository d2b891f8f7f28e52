import BroadsideCampaigns
import BroadsideSupport

/// `broadside control`: a request to a running send, or to another process with a control socket.
enum ControlCommand: Command {
    static let name = "control"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "control a running send: status | rate N | pause | resume | stop",
        usage: "--ledger DIR REQUEST [--json]",
        discussion: """
            Sends one request to the run that is writing the ledger in DIR, and prints the response.
            Every run accepts requests once it sends; no option is needed. Requests:

            status   show the progress
            rate N   from now on at most N requests per second; rate unlimited removes the limit;
                     rate 100..5000/10m lets it rise as --rate does; a new rate ends a rise
            pause    send no new requests; responses to requests in flight are still recorded
            resume   continue after a pause
            stop     end cleanly, as after Ctrl-C: wait for responses in flight;
                     send --resume continues later. The run ends with exit code 3, after
                     which systemd, Kubernetes, Airflow or Spark start it again: to keep it
                     stopped, use pause, or stop its unit, job or task there

            Instead of --ledger DIR, you can give PATH, the socket of a simulator or send that was
            started with --control PATH.

            Exit codes: 0 done; 1 no run is writing DIR, nothing listens on PATH, or no response comes
            within 10 s (for a simulator's wait: 10 s after its timeout); 2 the request is wrong, or DIR is not a ledger.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("ledger", .file(.ledger), "DIR", "the run that writes this ledger"),
                    .init(
                        "json", .flag, nil, "print the response as one line of JSON"),
                ])
        ],
        examples: [
            .init("Show the progress of a run", "broadside control --ledger tonight status"),
            .init(
                "Slow it down to 2,000 requests per second",
                "broadside control --ledger tonight rate 2000"),
            .init("Stop it cleanly", "broadside control --ledger tonight stop"),
        ],
        wordsAfterPath: ["status", "rate", "pause", "resume", "stop"],
        run: { (arguments) throws(BroadsideError) in
            var words = arguments.words[...]
            let ledger = arguments.string("ledger")
            let path = ledger == nil ? words.popFirst() : nil
            guard !words.isEmpty, ledger != nil || path != nil else {
                throw .request(
                    "control takes a run and a request: "
                        + "broadside control --ledger DIR status|rate N|pause|resume|stop")
            }
            if let path, isDirectory(path) {
                throw .request(
                    "\(path) is a directory: did you mean --ledger \(shellWord(path))?")
            }
            let request = words.joined(separator: " ")
            guard !request.contains("\n") else {
                throw .request("a request is one line: remove the line break")
            }
            let response =
                if let ledger {
                    try ControlClient.ask(ledger: ledger, request: request)
                } else {
                    try ControlClient.ask(path: path ?? "", request: request)
                }
            let error = ControlClient.error(in: response)
            if arguments.has("json") {
                print(response)
            } else if error == nil {
                printText(ControlClient.text(of: response) + ControlClient.note(on: request))
            }
            if let error {
                throw BroadsideError(error, exitCode: 2)
            }
            return 0
        })
}
