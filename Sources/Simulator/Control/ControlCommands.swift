internal import BroadsideAPNs
internal import BroadsideSupport
internal import Glibc

/// Executor of commands for a running simulator. Each response is a JSON object with a member `ok`.
struct ControlCommands: Sendable {
    let shared: EndpointShared
    let devices: DeviceStore?
    let channels: ChannelStore
    let start: ClockStart
    let instruments: Instruments
    /// The scenario with which the simulator started. `reset` restores it.
    let scenario: Scenario?

    /// Maximum number of requests in a response to `received`.
    static let receivedLimit: UInt64 = 10_000
    private static let receivedDefault: UInt64 = 1000
    /// Maximum number of requests that `wait` can wait for.
    private static let waitCount: UInt64 = 10_000_000
    /// Maximum time until all threads have carried out an order, such as to drop their
    /// connections, nanoseconds.
    private static let orderNanoseconds: UInt64 = 10_000_000_000
    /// Time between two checks of whether a command can respond, microseconds.
    private static let pauseMicroseconds: UInt32 = 2000

    /// Executes one command line and returns its response.
    func response(_ line: String) -> String {
        do throws(ControlProblem) {
            return try execute(Self.request(line))
        } catch {
            return Self.failure(error.message)
        }
    }

    /// Executes one command line. The response to `wait` follows later, so that a server can
    /// serve other clients before.
    func deferredResponse(_ line: String) -> UnixLineServer.Response {
        do throws(ControlProblem) {
            let request = try Self.request(line)
            guard request.command == .wait else { return .now(try execute(request)) }
            var wait = try requestWait(request)
            return .later {
                do throws(ControlProblem) {
                    return try wait.response()
                } catch {
                    return Self.failure(error.message)
                }
            }
        } catch {
            return .now(Self.failure(error.message))
        }
    }

    private static func request(_ line: String) throws(ControlProblem) -> ControlRequest {
        try ControlRequest(words: line.split(whereSeparator: \.isWhitespace).map(String.init))
    }

    /// Executes a command and returns its response.
    func execute(_ request: ControlRequest) throws(ControlProblem) -> String {
        switch request.command {
        case .status: return status()
        case .received: return try received(request)
        case .wait: return try wait(request)
        case .reset: return reset()
        case .outcome: return try chooseOutcome(request)
        case .expireToken:
            var line = Self.success
            line.add("expired", instruments.expiredTokens?.expireUsed() ?? 0)
            return line.object
        case .drop: return try drop(request)
        case .scenario: return try scenario(request.arguments["name"] ?? "")
        case .online:
            return try device(request) { store, token, microseconds in
                store.setOnline(token, true, microseconds: microseconds).map {
                    $0 + channels.cameOnline(token, microseconds: microseconds)
                }
            }
        case .offline: return try device(request) { $0.setOnline($1, false, microseconds: $2) }
        case .savingPower:
            return try device(request) { $0.setSavingPower($1, true, microseconds: $2) }
        case .awake:
            return try device(request) { $0.setSavingPower($1, false, microseconds: $2) }
        case .subscribe: return try subscription(request, true)
        case .unsubscribe: return try subscription(request, false)
        }
    }

    private func status() -> String {
        let counts = shared.countsSinceRestart
        var line = Self.success
        line.add("connections", counts.connections)
        line.add("open_connections", shared.openConnections)
        line.add("requests", counts.requests)
        line.add("accepted", counts.accepted)
        let run = shared.scenario
        line.add("scenario", run?.scenario.name)
        if let run { line.add("strikes", run.strikes.reduce(0, +)) }
        if let devices {
            let counts = devices.counts(microseconds: start.microsecondsNow())
            devices.flush()
            line.add("stored", counts.stored)
            line.add("held", counts.held)
            line.add("delivered", counts.delivered)
            line.add("coalesced", counts.coalesced)
            line.add("expired", counts.expired)
            line.add("discarded", counts.discarded)
            line.add("dropped", counts.dropped)
        }
        let ofChannels = channels.counts(microseconds: start.microsecondsNow())
        line.add("channels", ofChannels.channels)
        line.add("subscriptions", ofChannels.subscriptions)
        line.add("stored_broadcasts", ofChannels.stored)
        if let outcomes = instruments.outcomes { line.add("outcomes", outcomes.count) }
        if let replay = instruments.replay {
            let counts = replay.counts
            line.add("replayed", counts.replayed)
            line.add("repeated", counts.repeated)
            line.add("not_recorded", counts.unknown)
        }
        return line.object
    }

    private func scenario(_ name: String) throws(ControlProblem) -> String {
        var run: ScenarioRun?
        if name != "none" {
            do throws(SimulatorError) {
                run = ScenarioRun(
                    try Scenario.find(name), now: ClockStart.monotonicNanoseconds())
            } catch {
                throw ControlProblem(.invalid, error.message)
            }
        }
        shared.scenario = run
        shared.wake()
        var line = Self.success
        line.add("scenario", run?.scenario.name)
        return line.object
    }

    // MARK: Requests

    private func log() throws(ControlProblem) -> ReceivedLog {
        guard let log = instruments.received else {
            throw ControlProblem(
                .invalid, "no requests are kept: start the simulator without --keep-requests 0")
        }
        return log
    }

    private func filter(_ request: ControlRequest) throws(ControlProblem) -> ReceivedFilter {
        var filter = ReceivedFilter()
        if request.arguments["token"] != nil {
            filter.token = String(decoding: try Self.token(request), as: UTF8.self)
        }
        filter.topic = request.arguments["topic"]
        filter.reason = request.arguments["reason"]
        if request.arguments["status"] != nil {
            filter.status = UInt16(try request.number("status", in: 0...999, default: 0))
        }
        filter.headers = request.arguments.filter { $0.key.hasPrefix("apns-") }
            .map { ($0.key, $0.value) }
        return filter
    }

    private func received(_ request: ControlRequest) throws(ControlProblem) -> String {
        let after = try request.number("after", in: 0...(.max), default: 0)
        let limit = try request.number(
            "limit", in: 1...Self.receivedLimit, default: Self.receivedDefault)
        let selection = try log().select(
            after: after, limit: Int(limit), try filter(request))
        var line = Self.success
        line.add("total", selection.total)
        line.add("dropped", selection.dropped)
        line.add("more", selection.hasMore)
        line.addRaw("requests", "[\(selection.rows.map(\.json).joined(separator: ","))]")
        return line.object
    }

    private func wait(_ request: ControlRequest) throws(ControlProblem) -> String {
        var wait = try requestWait(request)
        while true {
            if let response = try wait.response() { return response }
            usleep(Self.pauseMicroseconds)
        }
    }

    private func requestWait(_ request: ControlRequest) throws(ControlProblem) -> RequestWait {
        let count = try request.number("count", in: 1...Self.waitCount, default: 1)
        let timeout = request.arguments["timeout"]
        guard let nanoseconds = WaitTimeout.nanoseconds(timeout) else {
            throw ControlProblem(
                .invalid,
                "timeout '\(ForeignText.escaped(timeout ?? ""))' is not a duration of at most "
                    + "\(WaitTimeout.limitSeconds)s: write it like 500ms or 10s")
        }
        return RequestWait(
            count: count, after: try request.number("after", in: 0...(.max), default: 0),
            try filter(request), nanoseconds: nanoseconds, log: try log(), shared: shared)
    }

    private func reset() -> String {
        instruments.received?.removeAll()
        instruments.outcomes?.removeAll()
        instruments.expiredTokens?.removeAll()
        instruments.replay?.restart()
        devices?.reset()
        channels.reset()
        let order = shared.orderRestart()
        _ = waitForThreads { shared.isReadyToRestart(order) ? true : nil }
        shared.restartCounts()
        shared.scenario = scenario.map {
            ScenarioRun($0, now: ClockStart.monotonicNanoseconds())
        }
        shared.wake()
        return Self.success.object
    }

    // MARK: Faults

    private func chooseOutcome(_ request: ControlRequest) throws(ControlProblem) -> String {
        let token = try Self.token(request)
        guard let outcomes = instruments.outcomes else {
            throw ControlProblem(.invalid, "this simulator sets no outcomes")
        }
        let text = request.arguments["reason"] ?? ""
        if text == "none" {
            var line = Self.success
            line.add("removed", outcomes.remove(token))
            return line.object
        }
        var response = Response.accepted
        if text != "accepted" {
            guard let reason = Reason.ofAPNs(text) else {
                throw ControlProblem(
                    .invalid,
                    "reason '\(ForeignText.escaped(text))' is unknown: write accepted, none, or "
                        + "a reason of APNs such as Unregistered, BadDeviceToken, TooManyRequests or "
                        + "ServiceUnavailable")
            }
            response = .refused(reason)
        }
        if request.arguments["retry-after"] != nil {
            response.retryAfterSeconds = UInt32(
                try request.number("retry-after", in: 0...86_400, default: 0))
        }
        // 0 means the time of the request.
        response.timestampMilliseconds = try request.number(
            "timestamp", in: 0...100_000_000_000_000, default: 0)
        var remaining: UInt64?
        if request.arguments["times"] != nil {
            remaining = try request.number("times", in: 1...1_000_000_000, default: 1)
        }
        guard outcomes.set(token, .init(response: response, remaining: remaining)) else {
            throw ControlProblem(
                .full,
                "\(ChosenOutcomes.limit) tokens already have an outcome: remove some outcomes with "
                    + "the reason 'none', or all with 'reset'"
            )
        }
        var line = Self.success
        line.add("status", UInt64(response.status))
        line.add("reason", response.reason?.text)
        return line.object
    }

    private func drop(_ request: ControlRequest) throws(ControlProblem) -> String {
        let text = request.arguments["manner"] ?? DropManner.goAway.rawValue
        guard let manner = DropManner(rawValue: text) else {
            throw ControlProblem(
                .invalid,
                "manner '\(ForeignText.escaped(text))' is unknown: write "
                    + DropManner.allCases.map(\.rawValue).joined(separator: ", "))
        }
        let order = shared.orderDrop(manner)
        guard let dropped = waitForThreads({ shared.dropped(by: order) }) else {
            throw ControlProblem(
                .late, "the connections are not dropped yet: check 'status' in a moment")
        }
        var line = Self.success
        line.add("dropped", dropped)
        return line.object
    }

    /// Waits until all threads have carried out an order.
    ///
    /// - Parameter result: Returns the result of the order; nil as long as a thread has not carried
    ///   it out.
    /// - Returns: The result; nil if it takes too long.
    private func waitForThreads<Value>(_ result: () -> Value?) -> Value? {
        let deadline = ClockStart.monotonicNanoseconds() + Self.orderNanoseconds
        while true {
            if let value = result() { return value }
            guard ClockStart.monotonicNanoseconds() < deadline, !shared.isStopping else {
                return nil
            }
            usleep(Self.pauseMicroseconds)
        }
    }

    // MARK: Devices

    private static func token(_ request: ControlRequest) throws(ControlProblem) -> [UInt8] {
        guard let token = DeviceCondition.normalized(Array((request.arguments["token"] ?? "").utf8))
        else {
            throw ControlProblem(
                .invalid, "not a device token: write an even number of hexadecimal digits, 2 to 200"
            )
        }
        return token
    }

    /// Changes a device's condition. The response contains the number of notifications delivered to
    /// the device because of this change.
    private func device(
        _ request: ControlRequest, _ set: (DeviceStore, [UInt8], UInt64) -> Int?
    ) throws(ControlProblem) -> String {
        let token = try Self.token(request)
        guard let devices, let count = set(devices, token, start.microsecondsNow()) else {
            throw ControlProblem(
                .full,
                "\(DeviceCondition.explicitLimit) devices already have a setting: remove all settings "
                    + "with 'reset'")
        }
        var line = Self.success
        line.add("delivered", count)
        return line.object
    }

    private func subscription(
        _ request: ControlRequest, _ isSubscribed: Bool
    ) throws(ControlProblem) -> String {
        let token = try Self.token(request)
        // An ID may have `+`, which stands for a blank in the query of a URL. No ID has a blank.
        let blank = UInt8(ascii: " ")
        let channel = (request.arguments["channel"] ?? "").utf8
            .map { $0 == blank ? UInt8(ascii: "+") : $0 }
        if let problem = channels.setSubscribed(token, to: channel, isSubscribed) {
            throw ControlProblem(.invalid, problem)
        }
        return Self.success.object
    }

    static var success: JSONLine {
        var line = JSONLine()
        line.add("ok", true)
        return line
    }

    static func failure(_ message: String) -> String {
        var line = JSONLine()
        line.add("ok", false)
        line.add("error", message)
        return line.object
    }
}
