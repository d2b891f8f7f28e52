/// What can be said to a running simulator: `status`, `scenario NAME`, `online TOKEN`,
/// `offline TOKEN`, `saving-power TOKEN`, `awake TOKEN`. Each answer is a line of JSON with `ok`.
struct ControlCommands: Sendable {
    let shared: EndpointShared
    let devices: DeviceStore?
    let start: ClockStart

    /// The answer to a line.
    func answer(_ line: String) -> String {
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        switch (words.first, words.count) {
        case ("status", 1): return status()
        case ("scenario", 2): return scenario(words[1])
        case ("online", 2): return device(words[1]) { $0.setOnline($1, true, microseconds: $2) }
        case ("offline", 2): return device(words[1]) { $0.setOnline($1, false, microseconds: $2) }
        case ("saving-power", 2):
            return device(words[1]) { $0.setSavingPower($1, true, microseconds: $2) }
        case ("awake", 2):
            return device(words[1]) { $0.setSavingPower($1, false, microseconds: $2) }
        default:
            return Self.failure(
                "unknown command: status, scenario NAME, online TOKEN, offline TOKEN, "
                    + "saving-power TOKEN, awake TOKEN")
        }
    }

    private func status() -> String {
        let counts = shared.counts
        var text = "{\"ok\":true,\"connections\":\(shared.connections),"
        text += "\"open_connections\":\(counts.open),\"requests\":\(counts.requests),"
        text += "\"accepted\":\(counts.accepted),\"scenario\":"
        if let run = shared.scenario {
            text += Self.quoted(run.scenario.name)
            text += ",\"strikes\":\(run.strikes.reduce(0, +))"
        } else {
            text += "null"
        }
        if let devices {
            let counts = devices.counts(microseconds: start.microsecondsNow())
            devices.flush()
            text += ",\"stored\":\(counts.stored),\"held\":\(counts.held)"
            text += ",\"delivered\":\(counts.delivered)"
            text += ",\"coalesced\":\(counts.coalesced),\"expired\":\(counts.expired)"
            text += ",\"discarded\":\(counts.discarded),\"dropped\":\(counts.dropped)"
        }
        return text + "}"
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
        return "{\"ok\":true,\"scenario\":\(run.map { Self.quoted($0.scenario.name) } ?? "null")}"
    }

    /// Says something of a device; the answer has how many notifications it got for that.
    private func device(
        _ text: String, _ say: (DeviceStore, [UInt8], UInt64) -> Int?
    ) -> String {
        guard let token = DeviceCondition.normalized(Array(text.utf8)) else {
            return Self.failure("no device token: an even count of 2 to 200 hexadecimal digits")
        }
        guard let devices, let count = say(devices, token, start.microsecondsNow()) else {
            return Self.failure("more devices than \(DeviceCondition.maximumSaid)")
        }
        return "{\"ok\":true,\"delivered\":\(count)}"
    }

    private static func failure(_ message: String) -> String {
        "{\"ok\":false,\"error\":\(quoted(message))}"
    }

    /// A JSON string.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\u{0}"..."\u{1f}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
