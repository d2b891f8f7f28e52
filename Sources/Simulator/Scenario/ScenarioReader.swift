internal import BroadsidePrimitives

/// Parses a scenario's JSON5 text, as described in `docs/scenarios.md`.
enum ScenarioReader {
    /// Maximum number of faults in a scenario.
    static let maximumFaults = 64

    static func read(_ bytes: [UInt8], name: String) throws(ScenarioError) -> Scenario {
        let value: JSON5Value
        do throws(JSON5Error) {
            value = try JSON5Reader.read(bytes)
        } catch {
            throw ScenarioError(message: error.message, position: error.position)
        }
        var fields = try ScenarioFields(value, "a scenario")
        var scenario = Scenario(name: name)
        scenario.summary = try fields.text("description") ?? ""
        scenario.seed = try fields.integer("seed", in: 0...(1 << 53)) ?? 0
        if var settings = try fields.object("settings") {
            scenario.settings = try change(&settings)
            try settings.finish("'settings'")
        }
        scenario.window = try portion(&fields, "window")
        scenario.reading = try portion(&fields, "reading")
        if var responses = try fields.object("answers") {
            scenario.responses.headerFrames =
                try responses.integer("header_frames", in: 1...16).map(Int.init) ?? 1
            scenario.responses.dataBytes =
                try responses.integer("data_octets", in: 1...16_384).map(Int.init) ?? .max
            scenario.responses.padding =
                try responses.integer("padding", in: 0...255).map(Int.init) ?? 0
            try responses.finish("'answers'")
        }
        scenario.latency = try latency(&fields)
        scenario.idleNanoseconds = try fields.duration("idle_timeout")
        scenario.handshakeNanoseconds = try fields.duration("handshake_timeout")
        scenario.debug = try fields.choice("goaway", DebugForm.self) ?? .json
        if var rate = try fields.object("token_rate") {
            let requests = try rate.integer("requests", in: 1...1_000_000)
            let interval = try rate.duration("per")
            scenario.tokenRate = TokenRate(
                requests: UInt32(try rate.required(requests, "requests")),
                intervalNanoseconds: try rate.required(interval, "per"))
            try rate.finish("'token_rate'")
        }
        if var refusals = try fields.object("refusals") {
            scenario.refusals.collapseAfter =
                try refusals.integer("collapse_after", in: 1...1_000_000_000)
            scenario.refusals.goAwayAfter =
                try refusals.integer("goaway_after", in: 1...1_000_000_000)
            scenario.refusals.slowNanoseconds = try refusals.duration("slow_by") ?? 0
            try refusals.finish("'refusals'")
        }
        if var updates = try fields.object("token_updates") {
            scenario.tokenUpdates = TokenUpdateRule(
                intervalNanoseconds: try updates.duration("per") ?? 1_200_000_000_000,
                countsInvalid: try updates.boolean("invalid") ?? false)
            try updates.finish("'token_updates'")
        }
        if var late = try fields.object("unregistered") {
            scenario.lateUnregistered = LateUnregistered(
                withinNanoseconds: try late.duration("within") ?? 0,
                share: try late.number("share", in: 0...1) ?? 1)
            try late.finish("'unregistered'")
        }
        if var gateway = try fields.object("gateway") {
            scenario.gateway = try script(&gateway)
            try gateway.finish("'gateway'")
        }
        let faults = try fields.array("faults")
        guard faults.count <= maximumFaults else {
            throw ScenarioError(
                message: "more than \(maximumFaults) faults",
                position: faults[maximumFaults].position)
        }
        for fault in faults { scenario.faults.append(try FaultReader.read(fault)) }
        try fields.finish("a scenario")
        return scenario
    }

    private static func script(
        _ fields: inout ScenarioFields
    ) throws(ScenarioError) -> GatewayScript {
        var script = GatewayScript()
        if let delay = try fields.duration("error_delay") { script.errorDelayNanoseconds = delay }
        if let end = try fields.choice("end", GatewayScript.End.self) { script.end = end }
        script.shutdownEvery = try fields.integer("shutdown_every", in: 1...1_000_000_000)
        let statuses = try fields.array("statuses")
        guard statuses.count <= GatewayScript.statusLimit else {
            throw ScenarioError(
                message: "more than \(GatewayScript.statusLimit) statuses",
                position: statuses[GatewayScript.statusLimit].position)
        }
        for element in statuses {
            var entry = try ScenarioFields(element, "a status")
            let digits = try entry.required(try entry.text("token"), "token")
            let status = try entry.required(try entry.integer("status", in: 1...255), "status")
            try entry.finish("a status")
            guard
                let token = TokenTrust.bytes(ofDigits: Array(digits.utf8).span.rawBytes)
            else {
                throw ScenarioError(
                    message: "'token' must be an even number of hexadecimal digits",
                    position: element.position)
            }
            script.statuses[token] = UInt8(status)
        }
        return script
    }

    /// Reads the settings of a SETTINGS frame, all of which are optional.
    static func change(_ fields: inout ScenarioFields) throws(ScenarioError) -> SettingsChange {
        var change = SettingsChange()
        change.maxStreams = try fields.integer("max_streams", in: 0...0x7fff_ffff).map(UInt32.init)
        change.headerTableSize =
            try fields.integer("header_table_size", in: 0...65_536).map(UInt32.init)
        change.initialWindow =
            try fields.integer("initial_window", in: 0...0x7fff_ffff).map(UInt32.init)
        change.maxFrameSize =
            try fields.integer("max_frame_size", in: 16_384...0xff_ffff).map(UInt32.init)
        change.maxHeaderListSize =
            try fields.integer("max_header_list_size", in: 0...0x7fff_ffff).map(UInt32.init)
        return change
    }

    private static func portion(
        _ fields: inout ScenarioFields, _ name: String
    ) throws(ScenarioError) -> Portion? {
        guard var portion = try fields.object(name) else { return nil }
        let count = try portion.integer("octets", in: 1...0x7fff_ffff)
        let interval = try portion.duration("every")
        let result = Portion(
            count: Int(try portion.required(count, "octets")),
            intervalNanoseconds: max(1, try portion.required(interval, "every")))
        try portion.finish("'\(name)'")
        return result
    }

    private enum CapacityScope: String, CaseIterable {
        case thread, connection
    }

    private enum DistributionName: String, CaseIterable {
        case constant, uniform, exponential, lognormal
    }

    private static func latency(_ outer: inout ScenarioFields) throws(ScenarioError) -> Latency? {
        guard let value = outer.value("latency") else { return nil }
        if case .string = value.content {
            return Latency(
                distribution: .constant(try ScenarioFields.duration(value, "latency")))
        }
        var fields = try ScenarioFields(value, "'latency'")
        let name = try fields.choice("distribution", DistributionName.self) ?? .constant
        func demand(_ name: String) throws(ScenarioError) -> UInt64 {
            try fields.required(try fields.duration(name), name)
        }
        let distribution: Latency.Distribution
        switch name {
        case .constant: distribution = .constant(try fields.duration("value") ?? 0)
        case .uniform:
            let (low, high) = (try demand("from"), try demand("to"))
            guard low <= high else {
                throw ScenarioError(
                    message: "'to' must not be below 'from'", position: fields.position)
            }
            distribution = .uniform(low, high)
        case .exponential: distribution = .exponential(mean: try demand("mean"))
        case .lognormal:
            let median = try demand("median")
            distribution = .logNormal(
                median: median, sigma: try fields.number("sigma", in: 0...10) ?? 0.5)
        }
        var latency = Latency(distribution: distribution)
        if let limit = try fields.duration("at_most") { latency.limitNanoseconds = limit }
        latency.perWaitingNanoseconds = try fields.duration("per_waiting") ?? 0
        latency.capacityPerSecond = try fields.integer("capacity", in: 1...1_000_000_000) ?? 0
        latency.isCapacityByConnection =
            try fields.choice("capacity_by", CapacityScope.self) == .connection
        try fields.finish("'latency'")
        return latency
    }
}
