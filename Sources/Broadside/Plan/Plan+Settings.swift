import BroadsideAPNs
import BroadsideObservability
import BroadsideSupport

extension Plan {
    /// Settings of the run, for the report. Includes names of files, never their contents: no key,
    /// token or passphrase.
    var settings: [Telemetry.Setting] {
        var settings: [Telemetry.Setting] = []
        func add(_ name: String, _ value: String?) {
            if let value { settings.append(.init(name: name, value: printable(value))) }
        }
        add("endpoint", hostAndPort)
        if options.endpoint == nil { add("environment", options.environment.rawValue) }
        if case .file(let path) = options.tokens { add("tokens", path) }
        add("part", options.part?.text)
        add("payload", options.payload.map { "\($0), \(payloads.description)" })
        add("payload by", options.payloadBy)
        add("arms", options.armsDescription)
        for arm in options.arms {
            add("arm \(arm.name)", arm.payload)
            add("collapse-id of arm \(arm.name)", arm.collapseID)
            add("priority of arm \(arm.name)", arm.priority.map { "\($0.rawValue)" })
        }
        if let binaryWait {
            add("protocol", "legacy gateway, command \(options.binaryCommand.rawValue)")
            add("topic", certificateTopics)
            add("silence", "accepted after \(decimal(Double(binaryWait) / 1e9, places: 1)) s")
        } else {
            add("topic", topicText ?? credential.onlyTopic)
            add("push type", headers.pushType.rawValue)
        }
        add("priority", "\(headers.priority.rawValue)")
        add("collapse-id", options.collapseID)
        switch credential.kind {
        case .providerToken:
            add("credential", options.keyID.map { "provider token, key \($0)" } ?? "provider token")
        default:
            add("credential", "client certificate")
        }
        add(
            "connections",
            "\(shape.connections)" + (shape.grows ? " to \(shape.connectionsMost)" : ""))
        let threads = shape.reactorsAtFirst
        add("reactors", "\(threads)" + (shape.reactors > threads ? " to \(shape.reactors)" : ""))
        add(
            binaryWait == nil ? "streams per connection" : "in flight per connection",
            "at most \(streamsPerConnection)")
        add("rate", options.rate?.words ?? "unlimited")
        add("rate per connection", options.ratePerConnection.map { SendRate($0).words })
        if options.wireProtocol == .http2 { add("pace", options.pace.rawValue) }
        add(
            "attempts",
            "\(options.maxAttempts), for \(durationText(Double(options.retryFor) / 1e9))")
        add("lost responses", options.onLost == .record ? "recorded as unknown" : "sent again")
        if !options.keepsTokens { add("tokens in the ledger", "none") }
        add("deadline", options.deadline.map { durationText(Double($0) / 1e9) })
        add("delivery", options.delivery.description)
        add("limit", options.limit.map { "\(grouped($0)) rows" })
        return settings
    }
}
