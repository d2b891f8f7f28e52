internal import BroadsideAPNs
import BroadsideEngine
internal import BroadsideLedgerFormat
import BroadsideLedgers
internal import BroadsidePayloads
internal import BroadsideRows
public import BroadsideSupport
import BroadsideTLS
internal import Glibc
internal import Synchronization

/// Runs `broadcast`: sends one payload to a broadcast channel, and records the outcome in a ledger.
public enum BroadcastRun {
    /// Sends the broadcast, unless the ledger records that it was sent, and prints the outcome.
    ///
    /// - Returns: 0 if APNs accepted the broadcast in this start or an earlier one, 3 if it remains
    ///   and a later start can send it, 4 if APNs refuses it, 6 if it failed or its outcome is
    ///   unknown.
    /// - Throws: Exit code 1 if APNs can't be reached, 2 if the request is wrong, 3 or 6 if a signal
    ///   came before a repeat, 5 if the ledger can't be written.
    public static func run(_ options: BroadcastOptions) throws(BroadsideError) -> Int32 {
        let broadcast = try Broadcast(options)
        for warning in broadcast.warnings { standardErrorLine("broadside: warning: \(warning)") }
        if options.request.preview != nil {
            broadcast.show()
            return 0
        }
        let earlier = try options.ledger.flatMap {
            (path) throws(BroadsideError) -> BroadcastLedger.Earlier? in
            // A request in flight does not count as a doubt of an earlier start.
            if options.request.isDryRun { try LedgerDirectory.unlocked(path).refuseIfInUse() }
            return try BroadcastLedger.check(path: path, identity: broadcast.identity)
        }
        if let earlier { try broadcast.refuseRehearsal(earlier) }
        if options.request.isDryRun {
            var text = broadcast.plan
            if let earlier {
                if options.sendsAgain(earlier.state) {
                    broadcast.warnOfExpiration(earlier.expirationSeconds)
                } else {
                    text += "a start would send nothing: " + broadcast.record(earlier) + "\n"
                }
            }
            printText(text + "dry run: nothing was sent, nothing was written\n")
            return 0
        }
        guard let path = options.ledger else {
            throw .usage("ledger", "is missing: add --ledger DIR, a directory for the outcome")
        }
        try confirm(options, broadcast)
        let ledger = try BroadcastLedger(
            path: path, identity: broadcast.identity, expiration: options.expiration,
            name: options.name, now: Clock.now())
        return try send(broadcast, ledger, options)
    }

    /// Asks a person at a terminal to confirm a broadcast to production.
    private static func confirm(
        _ options: BroadcastOptions, _ broadcast: Broadcast
    ) throws(BroadsideError) {
        guard broadcast.server.isProduction, !options.request.isConfirmed, isatty(STDIN_FILENO) == 1
        else {
            return
        }
        standardError(broadcast.plan)
        standardError(
            "This goes to all subscribers of the channel in Apple's production environment. Type "
                + "yes to send:")
        guard readLine() == "yes" else {
            throw .request("not confirmed: nothing was sent; in a script, confirm with --yes")
        }
    }

    private static func send(
        _ broadcast: Broadcast, _ ledger: BroadcastLedger, _ options: BroadcastOptions
    ) throws(BroadsideError) -> Int32 {
        switch ledger.outcome.state {
        case .remaining: break
        case .inDoubt:
            // An earlier start was killed between the request and its response.
            if !options.sendsAgain(.inDoubt) {
                try ledger.begin(server: nil, Clock.now())
                try ledger.reserve(reopening: [], Clock.now())
                try ledger.settleUnknown(Clock.now())
                return reportEarlier(broadcast, ledger)
            }
        case let state where options.retry.contains(state): break
        default: return reportEarlier(broadcast, ledger)
        }
        broadcast.warnOfExpiration(ledger.expirationSeconds)
        // Nothing is reserved before a connection is open, so an unreachable server does not change
        // the broadcast's state.
        let first: BlockingConnection
        do throws(BroadsideError) {
            first = try broadcast.server.connect()
        } catch {
            ledger.discardUnlessBegun()
            throw error
        }
        try ledger.begin(server: broadcast.server.hostAndPort, Clock.now())
        RequestInterruption.handle(.broadcast)
        RequestInterruption.beginFlight()
        try ledger.reserve(reopening: options.retry, Clock.now())
        try attempt(broadcast, ledger, options, over: first)
        return broadcast.report(ledger)
    }

    /// Reports the outcome of an earlier start, and that this start sent nothing.
    private static func reportEarlier(
        _ broadcast: Broadcast, _ ledger: BroadcastLedger
    ) -> Int32 {
        let code = broadcast.report(ledger, isEarlier: true)
        let earlier = BroadcastLedger.Earlier(
            state: ledger.outcome.state, expirationSeconds: ledger.expirationSeconds,
            server: ledger.server)
        standardErrorLine(
            "broadside: nothing was sent now: \(broadcast.record(earlier))"
                + (earlier.state == .accepted ? "; to send it again, name another --ledger" : ""))
        return code
    }

    /// Sends the request, and repeats it until an outcome is recorded, or until this start can't
    /// repeat it. A request is repeated only if APNs certainly did not process it.
    private static func attempt(
        _ broadcast: Broadcast, _ ledger: BroadcastLedger, _ options: BroadcastOptions,
        over first: BlockingConnection
    ) throws(BroadsideError) {
        let request = broadcast.request(ledger)
        var connection = first
        var attempts = 0
        while true {
            attempts += 1
            assert(attempts <= options.attemptsMax, "the last attempt ends a broadcast")
            let isLast = attempts >= options.attemptsMax
            var retryAfter: UInt64?
            switch try exchange(request, broadcast, ledger, over: connection) {
            case .response(let response):
                if try settle(response, isLast: isLast, ledger) { return }
                retryAfter = response.retryAfterSeconds
            case .lost(let message):
                standardErrorLine("broadside: \(broadcast.server.hostAndPort): \(message)")
                return try ledger.settleUnknown(Clock.now())
            case .notProcessed(let refusal?, _):
                try ledger.release(Clock.now())
                ledger.refusal = BlockingConnection.Response(status: nil, reason: refusal)
                return
            case .notProcessed(nil, let cause):
                guard isLast else { break }
                return try postpone(
                    ledger,
                    "\(broadcast.server.hostAndPort) did not process the broadcast in "
                        + "\(attempts) attempt\(attempts == 1 ? "" : "s"): \(cause): start it again "
                        + "later")
            }
            guard let seconds = RepeatDelay.seconds(after: attempts, retryAfter: retryAfter) else {
                return try postpone(
                    ledger,
                    "APNs asks you to wait \(grouped(retryAfter ?? 0)) seconds; then start the "
                        + "broadcast again")
            }
            guard let next = try reconnect(after: seconds, broadcast, ledger, options) else {
                return
            }
            connection = next
        }
    }

    /// Sends the request of the reserved row.
    private static func exchange(
        _ request: SingleRequest, _ broadcast: Broadcast, _ ledger: BroadcastLedger,
        over connection: BlockingConnection
    ) throws(BroadsideError) -> SingleRequestServer.Outcome {
        do throws(BroadsideError) {
            let outcome = try broadcast.server.exchange(request, over: connection)
            ledger.countAttempt()
            return outcome
        } catch {
            // The credential can't be used, so nothing was sent.
            try ledger.release(Clock.now())
            throw error
        }
    }

    /// Leaves the broadcast to a later start.
    ///
    /// - Parameter cause: Cause, and advice without the options of that start.
    private static func postpone(
        _ ledger: BroadcastLedger, _ cause: String
    ) throws(BroadsideError) {
        try ledger.release(Clock.now())
        ledger.postponement = "\(cause) with \(ledger.nextOptions)"
    }

    /// Waits, then opens a connection for the next attempt and reserves the row.
    ///
    /// Unless an earlier start may have sent the broadcast, the row is released during the wait, so
    /// a process that ends then leaves it remaining.
    ///
    /// - Returns: The connection; nil if the server can't be reached any more, which leaves the
    ///   broadcast to a later start.
    private static func reconnect(
        after seconds: UInt64, _ broadcast: Broadcast, _ ledger: BroadcastLedger,
        _ options: BroadcastOptions
    ) throws(BroadsideError) -> BlockingConnection? {
        let isReleased = !ledger.mayHaveBeenSent
        if isReleased { try ledger.release(Clock.now()) }
        try RequestInterruption.endFlight(isReleased ? .notProcessed : .unknown)
        RepeatDelay.wait(seconds: seconds)
        let connection: BlockingConnection
        do throws(BroadsideError) {
            connection = try broadcast.server.connect()
        } catch {
            if !isReleased { try ledger.settleUnknown(Clock.now()) }
            ledger.postponement =
                "\(error.message): this start's requests were not accepted: start the broadcast "
                + "again later with \(ledger.nextOptions)"
            return nil
        }
        if isReleased {
            try ledger.begin(server: broadcast.server.hostAndPort, Clock.now())
        }
        RequestInterruption.beginFlight()
        guard isReleased else { return connection }
        try ledger.reserve(reopening: options.retry, Clock.now())
        return connection
    }

    /// Records the outcome of a response.
    ///
    /// - Returns: False if the request has to be repeated.
    private static func settle(
        _ response: BlockingConnection.Response, isLast: Bool, _ ledger: BroadcastLedger
    ) throws(BroadsideError) -> Bool {
        let (status, now) = (response.status ?? 0, Clock.now())
        func settle(_ state: RowState) throws(BroadsideError) {
            try ledger.settle(
                state, status: status, reason: response.reason, reasonText: response.reasonText,
                uniqueID: response.field("apns-unique-id"), now)
        }
        if status == 200 {
            try settle(.accepted)
            return true
        }
        switch ChannelRefusal.classify(response) {
        case .busy:
            guard isLast else { return false }
            guard ledger.mayHaveBeenSent else {
                try settle(.failed)
                return true
            }
            standardErrorLine("broadside: APNs refused the last attempt: \(response.summary)")
            try ledger.settleUnknown(now)
        case .lost:
            // The response arrived, so its status and its reason, if it has one, are recorded.
            try settle(.unknown)
        // Another credential or endpoint may be accepted, so a later start sends the broadcast.
        case .credential, .notFromAPNs:
            try ledger.release(now)
            ledger.refusal = response
        case .request: try settle(.rejected)
        }
        return true
    }
}
