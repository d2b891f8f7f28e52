import BroadsideAPNs
import BroadsideEngine
import BroadsideLegacyGateway
import BroadsidePayloads
import BroadsideSupport

extension Plan {
    /// Default port of a gateway.
    static let gatewayPort: UInt16 = 2195
    /// Default port of a legacy feedback service.
    static let feedbackPort: UInt16 = 2196
    /// Limit on notifications in flight per connection to a legacy gateway. The gateway confirms
    /// nothing. So a notification is in flight until `binaryWait` has passed without an error. With
    /// a larger limit, more notifications are sent in this time.
    static let gatewayWindow = 8192

    /// Advice about a server that does not speak HTTP/2, if its port was that of one of Apple's
    /// legacy services; nil for other ports.
    static func legacyHint(port: UInt16) -> String? {
        switch port {
        case gatewayPort:
            "port \(port) was that of legacy gateways: to send to one, add --protocol binary and "
                + "--certificate; doctor can't check it"
        case feedbackPort:
            "port \(port) was that of legacy feedback services: broadside feedback reads the list of "
                + "one"
        default: nil
        }
    }

    /// Text about the legacy gateway, to append to the endpoint; empty for HTTP/2.
    var protocolDescription: String {
        guard options.wireProtocol == .binary else { return "" }
        return ", legacy gateway, command \(options.binaryCommand.rawValue)"
    }

    /// Topic, push type and priority of the requests.
    var requestDescription: String {
        let priority = "priority \(headers.priority.rawValue)"
        guard options.wireProtocol == .binary else {
            return "\(topicDescription), push type "
                + "\(headers.pushType.rawValue), \(priority)"
        }
        return "\(certificateTopics), \(priority)"
    }

    private var topicDescription: String {
        guard namesTopics else { return headers.topic ?? credential.onlyTopic ?? "none" }
        return "\(options.topic ?? "") (each row's own, at most \(RowTopics.limit))"
    }

    /// Topics of the certificate. A legacy gateway applies them to the campaign, because its
    /// protocol has no field for a topic.
    var certificateTopics: String {
        let topics = credential.topics.joined(separator: ", ")
        return topics.isEmpty ? "not named by the certificate" : "\(topics), by the certificate"
    }

    /// Duration of a legacy gateway's silence that counts as acceptance, nanoseconds; nil for
    /// HTTP/2.
    var binaryWait: UInt64? {
        guard options.wireProtocol == .binary else { return nil }
        return options.requestTimeout / BinarySettings.silenceDivisor
    }

    /// Line of the plan about a legacy gateway's silence, which counts as acceptance; empty for
    /// HTTP/2.
    var silenceLine: String {
        guard let binaryWait else { return "" }
        let wait = decimal(Double(binaryWait) / 1e9, places: 1)
        return "\nsilence      a row counts as accepted after \(wait) s without an error"
    }

    /// Warning that rows recorded as accepted did not reach the gateway's devices, because its errors
    /// came after the wait for them; nil if there are none.
    func lateErrorsWarning(_ statistics: RunStatistics) -> String? {
        let count = statistics.refutedAcceptances
        guard count > 0, let binaryWait else { return nil }
        let wait = decimal(Double(binaryWait) / 1e9, places: 1)
        return "broadside: warning: the gateway refused or discarded \(grouped(count)) "
            + "\(count == 1 ? "row that is" : "rows that are") recorded as accepted, because its errors "
            + "came after the wait of \(wait) s: give this gateway a longer --request-timeout"
    }

    /// Settings of a legacy gateway; nil for HTTP/2.
    func binarySettings(expirationSeconds: UInt64?) -> BinarySettings? {
        guard let binaryWait else { return nil }
        return BinarySettings(
            command: options.binaryCommand,
            expiration: expirationSeconds.map { UInt32(clamping: $0) },
            priority: headers.priority.rawValue,
            silence: binaryWait)
    }

    /// Minimum time by which `--give-up-after` exceeds a gateway's silence. Connecting, and noticing
    /// the silence, take time, too.
    private static let silenceMargin = second

    /// Refuses options that the binary protocol can't represent, and a `--give-up-after` that would
    /// end each run before the gateway's silence counts as acceptance.
    static func checkBinary(
        _ options: SendOptions, credential: Credential
    ) throws(BroadsideError) {
        guard options.endpoint != nil else {
            throw .usage(
                "protocol",
                "binary needs --endpoint HOST:PORT: Apple switched its own gateways off "
                    + "in 2021")
        }
        guard case .certificate = credential else {
            throw .usage(
                "protocol",
                "binary needs --certificate FILE: the gateway accepts no provider tokens")
        }
        let silence = options.requestTimeout / BinarySettings.silenceDivisor
        let giveUpAfter = options.giveUpAfter ?? SendOptions.defaultGiveUpAfter
        if giveUpAfter < silence + silenceMargin {
            let least = Int(((silence + silenceMargin) / second) + 1)
            throw .usage(
                "give-up-after",
                "\(durationText(Double(giveUpAfter) / 1e9)) is too short for a gateway, which accepts "
                    + "by a silence of a sixth of --request-timeout: use --give-up-after \(least)s "
                    + "or more, or a shorter --request-timeout")
        }
        let command = options.binaryCommand
        if options.traceFrames != nil {
            throw .usage("trace-frames", "shows HTTP/2 frames, and --protocol binary has none")
        }
        if options.headerIndexing != .strict {
            throw .usage("hpack", "applies to HTTP/2: remove it, or leave out --protocol binary")
        }
        if options.sendsContentLength {
            throw .usage(
                "content-length", "is an HTTP/2 header: remove it, or leave out --protocol binary")
        }
        if options.pushType != .alert {
            throw .usage(
                "push-type",
                "is not part of the binary protocol: remove it; the payload and "
                    + "--priority 5 make a background push")
        }
        if let topic = options.topic, !credential.topics.contains(topic) {
            throw .usage(
                "topic",
                "does not work with --protocol binary, where the certificate determines the "
                    + "topic, and this certificate is not for \(topic): remove the "
                    + "option, or use the certificate of that app")
        }
        if options.collapseID != nil {
            throw .usage(
                "collapse-id", "is not part of the binary protocol: remove it")
        }
        if options.priority == .low {
            throw .usage("priority", "1 is not part of the binary protocol: use 10 or 5")
        }
        if options.priority == .normal, command != .frame {
            throw .usage(
                "priority", "5 needs --binary-command 2: the other commands always send 10")
        }
        if options.expiration != nil, command == .simple {
            throw .usage("expiration", "needs --binary-command 1 or 2: command 0 has no expiration")
        }
    }
}

extension PayloadFiles {
    /// Description of the problem if the constant part of a template exceeds the gateway's limit;
    /// nil if it does not. No row can make such a payload small enough.
    static func sizeProblem(
        _ template: PayloadTemplate, _ command: BinaryCommand
    ) -> PayloadCheck.Problem? {
        guard template.constantCount > command.payloadLimit else { return nil }
        let form = "command \(command.rawValue) of the binary protocol"
        return PayloadCheck.Problem(
            line: nil, column: nil,
            message: "has \(grouped(template.constantCount)) bytes"
                + (template.isPersonal ? " before its columns are filled in" : "")
                + ", but \(form) can carry \(grouped(command.payloadLimit)): shorten it"
                + (command == .frame ? "" : ", or use --binary-command 2"))
    }
}
