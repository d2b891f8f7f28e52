internal import BroadsideAPNs
internal import BroadsideLedgerFormat
import BroadsideLedgers
internal import BroadsidePayloads
internal import BroadsideRows
import BroadsideSupport
import BroadsideTLS

/// Payload, channel and server of a broadcast, already read and checked.
struct Broadcast {
    let server: SingleRequestServer
    let warnings: [String]
    private let app: String
    private let channel: String
    private let payload: [UInt8]
    private let options: BroadcastOptions

    /// Maximum size of a response's body, in bytes. APNs sends no body, or only a short reason.
    private static let bodyLimit = 4096

    /// Reads payload and credential.
    init(_ options: BroadcastOptions) throws(BroadsideError) {
        var options = options
        options.request.connection.adoptEnvironmentOfEndpoint()
        self.options = options
        app = try options.request.checkedApp()
        channel = try options.request.checkedChannel()
        var warnings: [String] = []
        payload = try Self.payload(options, &warnings)
        let connection = options.request.connection
        server = try SingleRequestServer(
            connection, host: Endpoints.broadcastHost(connection.environment),
            port: Endpoints.defaultPort, bodyLimit: Self.bodyLimit, warnings: &warnings)
        try server.credential.checkApp(app, connection)
        try Self.checkExpiration(options, &warnings)
        self.warnings = warnings
    }

    private static func payload(
        _ options: BroadcastOptions, _ warnings: inout [String]
    ) throws(BroadsideError) -> [UInt8] {
        guard let path = options.payload else {
            throw .usage("payload", "is missing: add --payload FILE")
        }
        let name = InputName(path, option: "payload")
        try PayloadFiles.checkFile(path, shownAs: name)
        // The file may be a pipe, which can be read only once.
        let file = try readFile(
            path, shownAs: name, limit: PayloadFiles.fileLimit, mustStay: true)
        if options.payloadCheck == .error {
            let report = PayloadReport(
                file, file: path, shownAs: name, pushType: .liveActivity, isBroadcast: true)
            if let failure = report.failure { throw .request(failure) }
            warnings += PayloadReport.warnings(of: [report])
        } else if let problem = PayloadCheck.syntaxProblem(file.rawSpan) {
            throw .request(name, problem.description(file: ""))
        }
        let payload: [UInt8]
        do throws(PayloadCheck.Problem) {
            payload = try PayloadTemplate(file.rawSpan).broadcastPayload()
        } catch {
            throw .request(name, error.description(file: ""))
        }
        guard payload.count <= BroadcastChannel.payloadCountMax else {
            throw .usage(
                "payload",
                "\(path): has \(grouped(payload.count)) bytes, but a broadcast can have at most "
                    + "\(grouped(BroadcastChannel.payloadCountMax)): shorten it")
        }
        return payload
    }

    private static func checkExpiration(
        _ options: BroadcastOptions, _ warnings: inout [String]
    ) throws(BroadsideError) {
        let now = Clock.now().wallMilliseconds / 1000
        let seconds = options.expiration.unixSeconds(startUnixSeconds: now)
        guard seconds > 0 else { return }
        if seconds <= now {
            // An earlier start's broadcast may continue after its expiration. If it has no outcome
            // yet, it is sent late.
            if let ledger = options.ledger, try LedgerDirectory.unlocked(ledger).hasManifest {
                return
            }
            throw .usage(
                "expiration",
                "\(seconds) has passed: write 0, a future time, or a time after the first start, "
                    + "such as +2h")
        }
        let headers = NotificationHeaders(
            pushType: .liveActivity, expirationUnixSeconds: seconds)
        let problems = headers.validate(credential: .providerToken)
        if let problem = problems.first(where: { $0.field == .expiration }) {
            throw problem.asError
        } else if seconds - now > BroadcastChannel.storageSecondsMax {
            warnings.append("--expiration: APNs keeps a broadcast for at most 8 hours")
        }
    }

    /// Identity of the broadcast in its ledger.
    var identity: CampaignIdentity {
        CampaignIdentity(
            listByteCount: nil, listFormat: CampaignIdentity.broadcastProtocol, columns: [],
            payloadSHA256: hexadecimal(sha256(payload)), topic: app,
            pushType: PushType.liveActivity.rawValue, priority: Int(options.priority.rawValue),
            expiration: options.expirationText, collapseID: nil,
            environment: options.request.connection.environment.rawValue, shard: nil,
            suppressSHA256: nil,
            wireProtocol: CampaignIdentity.broadcastProtocol, channel: channel)
    }

    /// Returns the request with the ID and the expiration that the ledger records.
    func request(_ ledger: BroadcastLedger) -> SingleRequest {
        request(requestID: ledger.requestID, expiration: "\(ledger.expirationSeconds)")
    }

    private func request(requestID: String, expiration: String) -> SingleRequest {
        SingleRequest(
            method: "POST", path: BroadcastChannel.broadcastPath(app: app),
            fields: [
                ("apns-channel-id", channel), ("apns-request-id", requestID),
                ("apns-push-type", PushType.liveActivity.rawValue),
                ("apns-priority", "\(options.priority.rawValue)"),
                ("apns-expiration", expiration),
            ], body: payload)
    }

    // MARK: Earlier starts

    /// Refuses a start that goes to Apple if another server, such as the simulator or that of Apple's
    /// other environment, has accepted the broadcast. After a rehearsal, no subscriber would get it.
    func refuseRehearsal(_ earlier: BroadcastLedger.Earlier) throws(BroadsideError) {
        guard earlier.state == .accepted, otherServer(earlier) != nil,
            options.request.connection.appleEnvironment != nil
        else { return }
        throw .request(
            "\(record(earlier)), but this start goes to \(server.hostAndPort), so nothing is sent: "
                + "if that was a rehearsal, name another --ledger; if that server is a relay, the "
                + "broadcast was sent")
    }

    /// What the ledger records, with the server if it is another one than that of this start.
    func record(_ earlier: BroadcastLedger.Earlier) -> String {
        let state = earlier.state == .inDoubt ? RowState.unknown : earlier.state
        return "the ledger records the broadcast as \(state.name)"
            + (otherServer(earlier).map { ", by \($0)" } ?? "")
    }

    /// Server of earlier starts, if it is not that of this start. Apple's servers of one environment
    /// are one server, and a relay counts as the one of Apple's to which it passes the broadcast.
    private func otherServer(_ earlier: BroadcastLedger.Earlier) -> String? {
        guard let known = earlier.server else { return nil }
        let isSame =
            if let environment = SendOptions.appleEnvironment(ofEndpoint: known) {
                environment == options.request.connection.tokenEnvironment
            } else {
                parseEndpoint(known)?.host.lowercased() == server.route.host.lowercased()
            }
        return isSame ? nil : printable(known)
    }

    /// Warns if the expiration that the first start fixed has passed.
    func warnOfExpiration(_ seconds: UInt64) {
        guard seconds > 0, seconds <= Clock.now().wallMilliseconds / 1000 else { return }
        standardErrorLine(
            "broadside: warning: --expiration \(options.expirationText) passed at "
                + "\(universalTime(seconds * 1000)): APNs tries to deliver the broadcast only once, "
                + "and does not store it")
    }

    // MARK: Output

    /// Prints the request as it would be sent.
    func show() {
        // The ledger of an earlier start has fixed the expiration. A ledger of another broadcast does
        // not concern a preview.
        let earlier = options.ledger.flatMap {
            try? BroadcastLedger.check(path: $0, identity: identity)
        }
        let now = Clock.now().wallMilliseconds / 1000
        let seconds =
            earlier?.expirationSeconds ?? options.expiration.unixSeconds(startUnixSeconds: now)
        let shown = request(
            requestID: "… (made from the ledger's campaign ID)",
            expiration: "\(seconds)")
        print(server.preview(shown) + "\npreview: nothing was sent, nothing was written")
    }

    /// Human-readable description of the request.
    var plan: String {
        var text = "broadcast to channel \(channel) of app \(app)\n"
        text += "payload     \(options.payload ?? ""), \(grouped(payload.count)) bytes\n"
        text += "to          \(server.hostAndPort)\n"
        text += "by          \(server.credential.summary)\n"
        text += "priority    \(options.priority.rawValue), expiration \(options.expirationText)\n"
        if let ledger = options.ledger { text += "ledger      \(ledger)\n" }
        return text
    }

    /// Prints the outcome.
    ///
    /// - Parameter isEarlier: Whether an earlier start recorded the outcome.
    /// - Returns: The exit code.
    func report(_ ledger: BroadcastLedger, isEarlier: Bool = false) -> Int32 {
        let outcome = ledger.outcome
        var line = JSONLine()
        line.add("app", app)
        line.add("channel", channel)
        line.add("state", outcome.state.name)
        line.add("status", outcome.status == 0 ? nil : UInt64(outcome.status))
        line.add("reason", outcome.reason.isEmpty ? nil : outcome.reason)
        line.add("request_id", ledger.requestID)
        line.add("unique_id", ledger.uniqueID)
        line.add("payload_sha256", hexadecimal(sha256(payload)))
        line.add("attempts", UInt64(outcome.attempts))
        let time = outcome.settledAtMilliseconds
        line.add("settled_at_ms", time == 0 ? nil : time)
        if options.request.isJSON {
            printText(line.object + "\n")
        } else {
            var text = "\(outcome.state.name)  request \(ledger.requestID)"
            if time > 0 { text += " at \(universalTime(time))" }
            printText(text + "\n")
        }
        return conclude(ledger, isEarlier: isEarlier)
    }

    /// Prints advice unless the broadcast was accepted, and returns the exit code.
    private func conclude(_ ledger: BroadcastLedger, isEarlier: Bool) -> Int32 {
        let outcome = ledger.outcome
        var response =
            ledger.refusal
            ?? BlockingConnection.Response(
                status: outcome.status, reason: Reason(text: outcome.reason))
        if ledger.refusal == nil, !outcome.reason.isEmpty {
            response.reasonText = outcome.reason
        }
        let earlier = isEarlier ? " in an earlier start" : ""
        let advice = ChannelRefusal.advice(
            response, app: app, environment: options.request.connection.environment)
        switch outcome.state {
        case .accepted: return ExitCode.complete
        case .rejected:
            standardErrorLine(
                "broadside: APNs refused the broadcast\(earlier): \(response.summary): \(advice); "
                    + "then name another --ledger")
            return ExitCode.refused
        case _ where ledger.postponement != nil:
            standardErrorLine("broadside: \(ledger.postponement ?? "")")
            return outcome.state == .remaining ? ExitCode.rowsRemain : ExitCode.openRows
        case _ where ledger.refusal != nil:
            let isFromAPNs = ChannelRefusal.classify(response) != .notFromAPNs
            let refused =
                isFromAPNs
                ? "APNs refused the credential" : "\(server.hostAndPort) refused the broadcast"
            standardErrorLine(
                "broadside: \(refused): \(response.summary): \(advice); then start again with "
                    + ledger.nextOptions)
            return ExitCode.refused
        case .failed:
            standardErrorLine(
                "broadside: the broadcast failed\(earlier): \(response.summary): \(advice); "
                    + "to send it again, add --retry failed")
        default:
            let cause =
                outcome.status == 0
                ? "the response was lost"
                : "the response \(outcome.status) does not say whether APNs processed the request"
            standardErrorLine(
                "broadside: \(cause), so devices may have received the broadcast: "
                    + "--retry unknown sends it again, and an alert may then appear twice")
        }
        return ExitCode.openRows
    }
}
