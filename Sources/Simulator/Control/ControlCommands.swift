internal import BroadsideSupport

/// Control commands for a running simulator: `status`, `scenario NAME`, `online TOKEN`, `offline
/// TOKEN`, `saving-power TOKEN`, `awake TOKEN`, `subscribe CHANNEL TOKEN`, `unsubscribe CHANNEL
/// TOKEN`. Each response is one line of JSON with an `ok` member.
struct ControlCommands: Sendable {
    let shared: EndpointShared
    let devices: DeviceStore?
    let channels: ChannelStore
    let start: ClockStart

    /// Executes one command line and returns its response.
    func response(_ line: String) -> String {
        let fields = line.split(whereSeparator: \.isWhitespace).map(String.init)
        switch (fields.first, fields.count) {
        case ("status", 1): return status()
        case ("scenario", 2): return scenario(fields[1])
        case ("online", 2):
            return device(fields[1]) { store, token, microseconds in
                store.setOnline(token, true, microseconds: microseconds).map {
                    $0 + channels.cameOnline(token, microseconds: microseconds)
                }
            }
        case ("subscribe", 3): return subscription(fields[1], fields[2], true)
        case ("unsubscribe", 3): return subscription(fields[1], fields[2], false)
        case ("offline", 2): return device(fields[1]) { $0.setOnline($1, false, microseconds: $2) }
        case ("saving-power", 2):
            return device(fields[1]) { $0.setSavingPower($1, true, microseconds: $2) }
        case ("awake", 2):
            return device(fields[1]) { $0.setSavingPower($1, false, microseconds: $2) }
        default:
            return Self.failure(
                "unknown command: status, scenario NAME, online TOKEN, offline TOKEN, "
                    + "saving-power TOKEN, awake TOKEN, subscribe CHANNEL TOKEN, "
                    + "unsubscribe CHANNEL TOKEN")
        }
    }

    private func status() -> String {
        let counts = shared.counts
        var line = Self.success
        line.add("connections", shared.connections)
        line.add("open_connections", counts.open)
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
        return line.object
    }

    private func scenario(_ name: String) -> String {
        var run: ScenarioRun?
        if name != "none" {
            do throws(SimulatorError) {
                run = ScenarioRun(
                    try Scenario.find(name), now: ClockStart.monotonicNanoseconds())
            } catch {
                return Self.failure(error.message)
            }
        }
        shared.scenario = run
        shared.wake()
        var line = Self.success
        line.add("scenario", run?.scenario.name)
        return line.object
    }

    /// Changes a device's condition and reports how many notifications were delivered to it as a
    /// result.
    private func device(
        _ text: String, _ set: (DeviceStore, [UInt8], UInt64) -> Int?
    ) -> String {
        guard let token = DeviceCondition.normalized(Array(text.utf8)) else {
            return Self.failure("no device token: an even count of 2 to 200 hexadecimal digits")
        }
        guard let devices, let count = set(devices, token, start.microsecondsNow()) else {
            return Self.failure("more devices than \(DeviceCondition.explicitLimit)")
        }
        var line = Self.success
        line.add("delivered", count)
        return line.object
    }

    private func subscription(
        _ channel: String, _ text: String, _ isSubscribed: Bool
    ) -> String {
        guard let token = DeviceCondition.normalized(Array(text.utf8)) else {
            return Self.failure("no device token: an even count of 2 to 200 hexadecimal digits")
        }
        if let problem = channels.setSubscribed(token, to: Array(channel.utf8), isSubscribed) {
            return Self.failure(problem)
        }
        return Self.success.object
    }

    private static var success: JSONLine {
        var line = JSONLine()
        line.add("ok", true)
        return line
    }

    private static func failure(_ message: String) -> String {
        var line = JSONLine()
        line.add("ok", false)
        line.add("error", message)
        return line.object
    }
}
