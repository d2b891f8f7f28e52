import BroadsideAPNs
import BroadsideHygiene
import BroadsideLedgers
import BroadsideLists
import BroadsidePayloads
import BroadsideRows
public import BroadsideSupport

/// Runs `prune`: writes a list without the tokens that ledgers report as dead.
public enum PruneRun {
    /// Runs a prune with the options.
    ///
    /// - Returns: A human-readable summary, a few lines.
    /// - Throws: The cause of the failure, with its exit code. In that case, the output is
    ///   unchanged.
    public static func run(_ options: PruneOptions) throws(BroadsideError) -> String {
        var options = options
        let topic: PruneTopic
        do throws(BroadsideError) {
            let ledgers = try LedgerCollection(options.ledgers, option: "ledger")
            ledgers.warn(option: "ledger")
            options.ledgers = ledgers.paths
            topic = try PruneTopic(options)
        } catch {
            // A file that is not a token list is reported before an unusable ledger.
            _ = try TokenList(
                .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn)
            throw error
        }
        let list = try TokenList(
            .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn,
            otherColumns: options.registeredColumn.map { [$0] } ?? [], wanted: topic.columns)
        if !options.isDryRun { try PruneFiles.check(options, list: list) }
        var hasSilence = false
        let dead = try deadTokens(options, topic, hasSilence: &hasSilence)
        guard !options.isDryRun else {
            let counts = try prune(
                list, dead: dead, options: options, topic, to: nil, removed: nil)
            try check(counts, options, list)
            let summary = summary(counts, options, hasSilence: hasSilence)
            do throws(BroadsideError) {
                try checkShare(counts, options)
            } catch {
                // The summary's row counts and reasons show whether the ledger is the right one.
                standardErrorLine(summary)
                throw error
            }
            return summary + "\ndry run: nothing was written"
        }
        let output = try OutputFile(
            options.output, option: options.outputOption, permissions: list.permissions)
        var removed: OutputFile?
        if let path = options.removed {
            removed = try OutputFile(
                path, option: "removed", permissions: list.permissions)
        }
        let counts = try prune(
            list, dead: dead, options: options, topic, to: output, removed: removed)
        try check(counts, options, list)
        try checkShare(counts, options)
        // The list may have been moved to the output's path in the meantime.
        try PruneFiles.check(options, list: list)
        try finish(output, removed: removed, options)
        return summary(counts, options, hasSilence: hasSilence)
    }

    /// Gives both files their final names. The removed rows come first, so that they are not lost
    /// if the second file fails.
    static func finish(
        _ output: OutputFile, removed: OutputFile?, _ options: PruneOptions
    ) throws(BroadsideError) {
        try output.settle()
        try removed?.finish()
        do throws(BroadsideError) {
            try output.finish()
        } catch {
            guard let path = options.removed, removed?.isFinished == true, !output.isFinished else {
                throw error
            }
            var error = error
            error.message +=
                ": \(path) is written, but this list is not: run the command again"
            throw error
        }
    }

    /// Refuses a list that has no device token, or no time in the registration column.
    private static func check(
        _ counts: PruneCounts, _ options: PruneOptions, _ list: TokenList
    ) throws(BroadsideError) {
        guard counts.rows > counts.withoutToken else {
            throw list.withoutToken(rows: counts.rows)
        }
        guard let column = options.registeredColumn else { return }
        guard counts.withRegistration > 0 else {
            throw try list.noRow(with: column, option: "registered-column")
        }
        guard counts.unreadableRegistrations == 0 || counts.hasReadableRegistration else {
            throw .unreadableRegistrations(
                column, in: list.name, firstLine: counts.firstUnreadableLine)
        }
    }

    /// Checks a prune's output before `probe` sends anything.
    public static func checkOutput(_ options: PruneOptions) throws(BroadsideError) {
        try PruneFiles.check(options.outputOption, options.output, identity: nil)
        try checkWritable(options.output, option: options.outputOption)
    }

    /// Reads the ledgers twice: first for dead tokens, then for later evidence that a token is
    /// alive.
    ///
    /// - Parameter hasSilence: Set if a ledger has rows that a legacy gateway accepted by sending
    ///   no error. Such an acceptance proves nothing about the token.
    private static func deadTokens(
        _ options: PruneOptions, _ topic: PruneTopic, hasSilence: inout Bool
    ) throws(BroadsideError) -> DeadTokens {
        var dead = DeadTokens()
        var ledgers: [(path: String, verdicts: VerdictLedger)] = []
        let opened = try options.ledgers.map { (path) throws(BroadsideError) in
            (path: path, parts: try LedgerDirectory.openToRead(path).ledgers())
        }
        let rehearsals = RehearsalLedgers(opened.flatMap { $0.parts.map { $0.directory } })
        for (path, parts) in opened {
            for (directory, found) in parts where rehearsals.believes(directory) {
                guard found.identity.keepsTokens else {
                    throw .usage("ledger", directory.withoutTokens)
                }
                if let copy = directory.oldCopy(found) {
                    standardErrorLine("broadside: warning: --ledger \(copy.warning)")
                }
                let (manifest, segments) = try directory.segments(knownTo: found)
                var verdicts = VerdictLedger(manifest: manifest, segments: segments)
                do {
                    try dead.insertDead(
                        of: &verdicts, reasons: options.reasons, among: topic.scope)
                } catch {
                    throw LedgerReader.unreadable(error, directory)
                }
                try checkResponses(of: verdicts, directory.path, options.reasons)
                hasSilence = hasSilence || verdicts.acceptsBySilence
                ledgers.append((path, verdicts))
            }
        }
        if let warning = topic.warning(ledgers.map(\.verdicts.scope), dead.scopes) {
            standardErrorLine("broadside: warning: \(warning)")
        }
        guard !dead.isFull else {
            throw .request(
                "the ledgers name more dead tokens than fit into \(DeadTokens.memoryLimit >> 20) MiB "
                    + "(\(dead.count) fitted): prune once for each of the --reasons")
        }
        dead.seal()
        guard dead.count > 0 else { return dead }
        for ledger in ledgers {
            do {
                try dead.rescueLiving(of: ledger.verdicts, reasons: options.reasons)
            } catch {
                throw LedgerReader.unreadable(error, .unlocked(ledger.path))
            }
        }
        dead.seal()
        return dead
    }

    /// Refuses a ledger whose run went to the wrong environment or topic, because APNs then reports
    /// valid tokens as bad.
    private static func checkResponses(
        of ledger: VerdictLedger, _ path: String, _ reasons: Set<Reason>
    ) throws(BroadsideError) {
        let wanted = reasons.intersection(ResponseTally.mismatchReasons)
        let responses = ledger.responses
        guard !wanted.isEmpty, responses.isMismatch else { return }
        throw .usage(
            "ledger",
            "\(path): \(responses.mismatchCount) of \(responses.count) responses are "
                + "BadDeviceToken or DeviceTokenNotForTopic, so nothing was written. Most likely "
                + "the run had the wrong environment or topic, so APNs also refused "
                + "valid tokens: leave this ledger out, or leave "
                + wanted.map(\.text).sorted().joined(separator: " and ") + " out of --reasons")
    }

    /// - Parameter output: Output file; nil: rows are only counted.
    private static func prune(
        _ list: TokenList, dead: consuming DeadTokens, options: PruneOptions, _ topic: PruneTopic,
        to output: OutputFile?, removed: OutputFile?
    ) throws(BroadsideError) -> PruneCounts {
        let isOriginal = list.hasReplacedLineEnds
        var topicOfRow: ((borrowing RowReader) -> String?)?
        if case .ofRow(let template, _) = topic {
            let topics = RowTopicReader(template, layout: list.layout)
            topicOfRow = { topics.topic(of: $0) }
        }
        var pruner = ListPruner(
            dead: dead, layout: list.layout,
            hasRegistration: options.registeredColumn != nil && list.format != .lines,
            topicOfRow: topicOfRow, collectsRemoved: removed != nil,
            nowMilliseconds: Clock.now().wallMilliseconds, notesRanges: isOriginal)
        var window = try ListWindow(list, isOriginal: isOriginal)
        var removedBytes: [UInt8] = []
        while try window.fill() {
            if isOriginal {
                try prune(list, &window, with: &pruner, to: output, removed: removed)
            } else {
                // SAFETY: the window does not move until `consume`, and nothing else accesses it
                // meanwhile.
                let outcome = unsafe pruner.process(
                    window.bytes, isLast: window.isLast, removed: &removedBytes)
                if let fault = pruner.fault { throw list.refusal(fault) }
                try output?.write(window.first(outcome.keptCount))
                if let removed, !removedBytes.isEmpty {
                    try removed.write(removedBytes)
                    removedBytes.removeAll(keepingCapacity: true)
                }
                window.consume(outcome.consumedCount)
            }
        }
        if let fault = pruner.finish() { throw list.refusal(fault) }
        try list.warnOfDamage(pruner.counts.overwritten)
        return pruner.counts
    }

    /// Processes part of a list whose line ends are converted to line feeds for reading. The rows
    /// that stay in the list are copied with their original line ends.
    private static func prune(
        _ list: TokenList, _ window: inout ListWindow, with pruner: inout ListPruner,
        to output: OutputFile?, removed: OutputFile?
    ) throws(BroadsideError) {
        var text = try window.withLineFeeds()
        var removedBytes: [UInt8] = []
        let isLast = window.isLast
        // SAFETY: nothing else accesses the text meanwhile, and nothing keeps its address.
        let outcome = unsafe text.withUnsafeMutableBytes {
            unsafe pruner.process($0, isLast: isLast, removed: &removedBytes)
        }
        if let fault = pruner.fault { throw list.refusal(fault) }
        let (handedOut, cut) = pruner.removedRanges
        if let output {
            try copy(window.first(outcome.consumedCount), without: cut, to: output)
        }
        if let removed {
            for range in handedOut {
                try removed.write(window.first(range.upperBound).extracting(range))
            }
        }
        window.consume(outcome.consumedCount)
    }

    /// Copies everything outside the given ranges, which are sorted.
    private static func copy(
        _ text: RawSpan, without holes: [Range<Int>], to output: OutputFile
    ) throws(BroadsideError) {
        var offset = 0
        for hole in holes {
            assert(hole.lowerBound >= offset, "the holes are in the order of the text")
            try output.write(text.extracting(offset..<hole.lowerBound))
            offset = hole.upperBound
        }
        try output.write(text.extracting(offset..<text.byteCount))
    }

    /// Refuses to remove too large a share of the rows. A large share probably means that the
    /// ledger is the wrong one. It is better to write no new list than one that has lost half of
    /// its rows.
    private static func checkShare(
        _ counts: PruneCounts, _ options: PruneOptions
    ) throws(BroadsideError) {
        guard counts.rows >= PruneOptions.guardedRowCount,
            counts.exceeds(percent: options.maxRemovedPercent)
        else { return }
        throw .request(
            "\(counts.removed) of \(counts.rows) rows would be removed, more "
                + "than \(percentText(options.maxRemovedPercent)) percent, so nothing "
                + "was written: is it the right ledger? \(options.moreAdvice)")
    }

    private static func percentText(_ percent: Double) -> String {
        percent == percent.rounded() ? "\(Int(percent))" : "\(percent)"
    }

    private static func summary(
        _ counts: PruneCounts, _ options: PruneOptions, hasSilence: Bool
    ) -> String {
        assert(counts.removed <= counts.rows, "a removed row is a row of the list")
        var text = "rows         \(grouped(counts.rows))\nremoved      \(grouped(counts.removed))"
        var separator = ": "
        for reason in Reason.allCases where counts.removedByReason[Int(reason.rawValue)] > 0 {
            let count = counts.removedByReason[Int(reason.rawValue)]
            text += "\(separator)\(reason.text) \(grouped(count))"
            separator = ", "
        }
        text += "\nkept         \(grouped(counts.rows - counts.removed))"
        if options.registeredColumn != nil {
            text += "\n  dead tokens registered later: \(grouped(counts.registeredLater))"
            text += "\n  dead tokens, registration unreadable: "
            text += grouped(counts.unreadableRegistrations)
            if let line = counts.firstUnreadableLine { text += ", the first on line \(line)" }
            if let line = counts.firstLineWithoutOffset {
                text += "\n  times without an offset are read as UTC, the first on line \(line)"
            }
        }
        if hasSilence, options.registeredColumn == nil {
            text += "\n  not counted as alive: tokens that a legacy gateway accepted "
            text += "by sending no error; "
            text += "--registered-column keeps tokens that were registered again"
        }
        if counts.withoutTopic > 0 {
            text += "\n  dead for some topic, but the row names no topic: "
            text += grouped(counts.withoutTopic)
        }
        if counts.withoutToken > 0 {
            text += "\n  without a device token: \(grouped(counts.withoutToken))"
        }
        return text
    }
}

/// Checks that no output file overwrites the list or the other output file.
enum PruneFiles {
    static func check(_ options: PruneOptions, list: TokenList) throws(BroadsideError) {
        try check(options.outputOption, options.output, identity: list.identity)
        guard let removed = options.removed else { return }
        try check("removed", removed, identity: list.identity)
        guard !OutputRule.areSame(options.output, removed) else {
            throw .usage("removed", "\(removed) is also the file of --output: choose another one")
        }
    }

    /// - Parameter identity: Identity of the list; nil if it is not a file.
    static func check(
        _ option: String, _ path: String, identity: FileIdentity?
    ) throws(BroadsideError) {
        guard path != "-" else {
            throw .usage(
                option,
                "- is standard output, where a failure could leave half of the list: name a file")
        }
        try OutputRule.checkDestination(option: option, path: path)
        guard let existing = FileIdentity(path: path) else { return }
        guard existing != identity else {
            throw .usage(
                option,
                "\(path) is the list that is being read: write to another file, "
                    + "then rename that file to \(path)")
        }
        guard existing.isRegular else {
            throw .usage(option, "\(path) is not a regular file: name a file")
        }
    }
}
