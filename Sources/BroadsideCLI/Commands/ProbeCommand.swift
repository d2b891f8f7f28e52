import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// `broadside probe`: a send whose notification is invisible to users.
enum ProbeCommand: Command {
    /// Payload with `content-available` and nothing to display (Apple, "Pushing background updates
    /// to your App").
    private static let payload = "{\"aps\":{\"content-available\":1}}"

    static let name = "probe"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "send a silent background push to every token, to find the dead ones",
        usage:
            "--tokens FILE --topic TOPIC CREDENTIAL --ledger DIR [OPTIONS]",
        discussion: """
            Sends a background push of priority 5 that is never stored (expiration 0) to every token:
            devices show nothing, and APNs reports which tokens are dead. Ledger, resume and exit codes
            work as in send. You can use the campaign file of a send: its payload, headers, times,
            output files, control socket and hook are ignored. Name another ledger for the probe, and
            outputs on the command line.
            """,
        sections: [whatToProbe.section, ListOptions.whichRows.section] + SendCommand.commonSections,
        examples: [
            .init(
                "Find out which tokens are dead, and write the list without them",
                #"""
                broadside probe --campaign evening.json5 --ledger probed \
                    --then-prune tokens.clean.txt
                """#
            ),
            .init(
                "Probe the first of two lists of one campaign; the second list gets --part 2/2",
                #"""
                broadside probe --campaign evening.json5 --part 1/2 \
                    --campaign-id 5f0c8a1be2d34796 --label country=de --ledger list1
                """#
            ),
        ],
        essentials: [
            "campaign", "tokens", "topic", "auth-key", "environment", "rate",
            "suppress", "then-prune", "dry-run", "ledger",
        ],
        passedOverInCampaign: [
            "payload", "payload-by", "push-type", "priority", "expiration", "collapse-id",
            "skip-dead",
            "registered-column", "dead-for", "cap", "history", "split", "split-salt", "arm",
            "arm-collapse-id", "arm-priority", "deliver-at", "zone-column", "zone-default", "on",
            "late", "quiet",
        ],
        leavesOutputsOfCampaign: true,
        summarizeWrongCampaign: { SendCommand.summarizeWrongCampaign($0, $1) },
        run: { (arguments) throws(BroadsideError) in
            let options = try SendCommand.read(arguments, options)
            if arguments.has("print-campaign") {
                print(CampaignOptions.text(arguments, of: description), terminator: "")
                return 0
            }
            guard let output = arguments.string("then-prune") else {
                return try CampaignRun.run(options)
            }
            let pruning = pruning(options, arguments, output: output)
            try PruneRun.checkOutput(pruning)
            let code = try CampaignRun.run(options)
            return options.opensNoConnection ? code : try prune(pruning, after: code)
        })

    private static let whatToProbe = OptionGroup<SendOptions>(
        title: "What to probe",
        options: ListOptions.list + [
            .text(
                "topic", "TOPIC", \.topic, "apns-topic: the app's bundle ID; {{column}} is replaced"
            ),
            ListOptions.limit,
            // The option has no effect until the probe has ended.
            .custom(
                "then-prune", .file(.written), "OUTPUT",
                "when the probe is complete, write the list without the dead tokens here"
            ) { (_, _) throws(BroadsideError) in },
        ])

    /// - Parameter code: Exit code of the probe.
    private static func prune(
        _ options: PruneOptions, after code: Int32
    ) throws(BroadsideError) -> Int32 {
        // If all rows are settled, the list can be pruned. Failed and unknown rows show nothing
        // about their tokens, so these tokens stay in the list.
        guard code == ExitCode.complete || code == ExitCode.openRows else {
            standardErrorLine(
                "broadside: warning: --then-prune \(options.output) is not written, because the "
                    + "probe is not complete: continue the probe with --resume")
            return code
        }
        do throws(BroadsideError) {
            standardError(try PruneRun.run(options))
            return code
        } catch {
            // Exit code 2 means that nothing was sent, which is not true here.
            throw BroadsideError(error.message, exitCode: error.exitCode == 2 ? 1 : error.exitCode)
        }
    }

    private static func options(
        from arguments: ParsedArguments
    ) throws(BroadsideError) -> SendOptions {
        try arguments.rejectWords(of: description)
        if !arguments.has("print-campaign") {
            try arguments.require(
                [.list] + RequiredOption.toConnect(arguments) + RequiredOption.ledger(arguments))
        }
        var options = SendOptions()
        _ = try arguments.required("tokens", "FILE")
        options.payloadBytes = Array(payload.utf8)
        options.isProbe = true
        options.pushType = .background
        options.priority = .normal
        options.expiration = .at(0)
        for group in [whatToProbe, ListOptions.whichRows] {
            try group.read(arguments, into: &options)
        }
        try SendCommand.readCommon(arguments, into: &options)
        return options
    }

    private static func pruning(
        _ options: SendOptions, _ arguments: ParsedArguments, output: String
    ) -> PruneOptions {
        let ledger = options.ledger ?? ""
        var tokens = arguments.string("tokens") ?? ""
        // Standard input was consumed; the ledger has a copy of it.
        if tokens == "-" { tokens = CampaignRun.spooledList(ledger: ledger) }
        var pruning = PruneOptions(ledgers: [ledger], tokens: tokens, output: output)
        pruning.format = options.format
        pruning.tokenColumn = options.tokenColumn
        pruning.topic = options.topic
        pruning.outputOption = "then-prune"
        var words = ["broadside", "prune", "--ledger", ledger, "--tokens", tokens]
        if let format = options.format { words += ["--format", format.rawValue] }
        if let column = options.tokenColumn { words += ["--token-column", column] }
        if let topic = options.topic { words += ["--topic", topic] }
        words += ["--output", output, "--max-removed", "100"]
        pruning.moreAdvice = "\(words.map(shellWord).joined(separator: " ")) writes it all the same"
        return pruning
    }
}
