import BroadsideAPNs
import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

// A start of a night that is finished.

extension NightCall {
    /// Reports a finished night without reading its list and payload. The files may by now be those
    /// of the next night.
    ///
    /// - Returns: The exit code; nil if rows remain or have to be checked.
    func finished(
        _ ledger: String, _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) -> Int32? {
        guard options.send.retry.isEmpty,
            try LedgerDirectory.isBegunLedgerIfThere(ledger),
            let reader = try? LedgerReader(path: ledger), reader.isFinished,
            reader.manifest.shards == nil, reader.manifest.isWholeListFinished,
            reader.manifest.epochs.last?.stop?.cause?.isAbort != true,
            hasOptions(of: reader, date)
        else { return nil }
        if let difference = try otherServer(than: reader) {
            throw LedgerSession.otherCampaign(reader.directory, difference, options.send)
        }
        let open = try reader.openRows()
        let retryable = try reader.retryableRows()
        if options.send.summary != nil, !options.send.opensNoConnection {
            try reader.statistics().write(to: options.send, nil)
        }
        var line = "the night of \(date) is finished: \(nothingIsSent)"
        if given == nil, let path = options.dateFile, earlierDate(history) == date {
            line += "; this is the date in \(printable(path))"
        } else if given == nil, date != today, let end = history.end(of: date, length: length) {
            line +=
                "; the next night may begin from \(localDateAndTime(end)) on, or now with --date "
                + "\(today)"
        }
        standardErrorLine(line)
        try warnIfLate(date, history)
        guard open.failed + open.unknown > 0 else { return ExitCode.complete }
        let states = [("failed", retryable.failed), ("unknown", retryable.unknown)]
            .filter { $0.1 > 0 }
        guard !states.isEmpty else {
            if let text = try reader.statistics().unsendableRowsText {
                standardErrorLine("broadside: \(text)")
            }
            return ExitCode.openRows
        }
        let counts = states.map { "\(grouped($0.1)) \($0.0)" }.joined(separator: ", ")
        let names = states.map(\.0).joined(separator: ",")
        standardErrorLine(
            "broadside: rows of the night of \(date) need a decision (\(counts)): run "
                + "the same command with --date \(date) --retry \(names) to send them "
                + "again"
                + (retryable.unknown > 0 ? ", but unknown rows may have arrived already" : ""))
        return ExitCode.openRows
    }

    /// Warns of a start that may be meant for another night, because the night that it finds
    /// finished began long ago, or because the day before was started and never sent.
    private func warnIfLate(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) {
        guard given == nil, date == today else { return }
        let unsent = try unsentDayBefore(history)
        let isStarted = unsent.map { history[$0] != nil } ?? false
        guard let age = history.age(of: date, at: now, beyond: isStarted ? 0 : length) else {
            return
        }
        let advice =
            unsent.map {
                "for another campaign today, run the same command with --date \($0), which was "
                    + "never sent"
            } ?? "the next night begins after midnight, and TZ sets the time zone of its date"
        standardErrorLine(
            "broadside: warning: the night of \(date) began \(durationText(Double(age) / 1_000)) "
                + "ago, so this start may be meant for another night: \(advice)")
    }

    /// Yesterday's date, if its night has not begun; nil if it has.
    private func unsentDayBefore(_ history: NightHistory) throws(BroadsideError) -> NightDate? {
        guard let date = today.dayBefore, history[date]?.state ?? .intended == .intended,
            try !LedgerDirectory.isBegunLedgerIfThere(folder.ledger(date))
        else { return nil }
        return date
    }

    /// Whether the options are those with which a finished night began: its rows, arms, topic, push
    /// type and environment. The content of files is not compared, because they may already be the
    /// files of the next night.
    private func hasOptions(of reader: LedgerReader, _ date: NightDate) -> Bool {
        let (send, known) = (send(of: date), reader.manifest.identity)
        var own = known
        send.rules.record(in: &own)
        return send.tokenEnvironment.rawValue == known.environment && send.topic == known.topic
            && send.pushType.rawValue == known.pushType && send.split == known.split
            && own.filter == known.filter && send.part == known.part
            && send.campaignID.map { hexadecimal($0) } == known.campaignID
            && send.shard?.index == known.shard?.index && send.shard?.count == known.shard?.count
            && namesList(of: reader)
    }

    /// Whether the options name the list that a night has sent.
    private func namesList(of reader: LedgerReader) -> Bool {
        guard let path = options.send.givenListPath else { return reader.listPath == nil }
        // The ledger has the list's path without links, but a link may have another target by now.
        let given = Telemetry.read(from: reader.directory)?.givenListPath
        return (given ?? reader.listPath).map { areSamePaths($0, path) } ?? false
    }

    /// Describes the server of a finished night's latest run, if this start goes to another server;
    /// nil if it does not, or if the night's server is unknown. Apple's ports are the same server.
    private func otherServer(than reader: LedgerReader) throws(BroadsideError) -> String? {
        guard let known = Telemetry.read(from: reader.directory)?.endpoint else { return nil }
        let (host, port) = try Plan.endpoint(options.send)
        let own = printable(Route.hostAndPort(host, port))
        let environment = Endpoints.environment(ofHost: host)
        let isSame =
            SendOptions.appleEnvironment(ofEndpoint: known) == environment
            && (environment != nil || known.lowercased() == own.lowercased())
        return isSame ? nil : "the endpoint was \(printable(known)), now it is \(own)"
    }

    /// Refuses to send a night's rest to Apple if another server, such as the simulator, has some of
    /// its rows. After a rehearsal, the devices of these rows would get nothing.
    func refuseRehearsal(
        _ ledger: String, _ date: NightDate
    ) throws(BroadsideError) {
        guard options.send.appleEnvironment != nil,
            try LedgerDirectory.isBegunLedgerIfThere(ledger),
            let reader = try? LedgerReader(path: ledger), reader.manifest.shards == nil,
            try !RowsElsewhere.runs(reader.directory, options.send).isEmpty
        else { return }
        let (index, manifest) = try reader.current((reader.directory, reader.manifest))
        guard
            let rows = try RowsElsewhere(index, manifest, reader.directory, options.send)
        else { return }
        let (host, port) = try Plan.endpoint(options.send)
        let reached =
            rows.othersCount == 0
            ? ""
            : ", with the \(grouped(rows.othersCount)) rows that other starts of this night sent"
        throw .request(
            "the night of \(date) has sent, or may have sent, \(rows.countText)"
                + " to \(rows.servers.joined(separator: ", ")), but this start goes to "
                + "\(printable(Route.hostAndPort(host, port))), so nothing is sent: if that was a "
                + "rehearsal, send a separate campaign with --name NAME, which goes to the whole list"
                + "\(reached); if that server is a relay, continue with --endpoint "
                + "\(shellWord(rows.servers[0]))")
    }

    /// Options of the send of a night, without its ledger. Each night of a campaign in parts has a
    /// campaign number of its own.
    func send(of date: NightDate) -> SendOptions {
        var send = options.send
        send.campaignID = send.campaignID.map { date.campaignNumber(of: $0) }
        return send
    }

    /// Returns whether the night's ledger was removed. If so, prints a message.
    func isRemoved(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) -> Bool {
        guard history[date]?.state == .removed, try !fileExists(folder.ledger(date)) else {
            return false
        }
        standardErrorLine(
            "the night of \(date) is finished, and --keep has removed its ledger: \(nothingIsSent)")
        return true
    }

    private var nothingIsSent: String {
        options.send.opensNoConnection ? "nothing would be sent" : "nothing is sent"
    }

    /// Whether this start may send rows of a night: it is not finished, or `--retry` reopens rows.
    func sendsRows(
        _ date: NightDate, _ history: NightHistory
    ) throws(BroadsideError) -> Bool {
        guard isOver(date, history) else { return true }
        let states = options.send.retry
        guard !states.isEmpty, let reader = try? LedgerReader(path: folder.ledger(date)) else {
            return false
        }
        let open = try reader.retryableRows()
        return states.contains(.failed) && open.failed > 0
            || states.contains(.unknown) && open.unknown > 0
    }

    /// Whether a night is finished, and these options send no further rows of it.
    func isOver(_ date: NightDate, _ history: NightHistory) -> Bool {
        if history[date]?.state == .removed { return true }
        guard let reader = try? LedgerReader(path: folder.ledger(date)) else { return false }
        return reader.isFinished && !reader.manifest.extendsBeyond(limit: options.send.limit)
    }
}
