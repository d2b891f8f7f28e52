internal import BroadsideRing

extension SimulatorOptions {
    /// Rejects invalid combinations of options before anything is created.
    func validate() throws(SimulatorError) {
        try validateAddresses()
        guard (0...SimulatorLimits.keptRequests).contains(keptRequests) else {
            throw SimulatorError(
                "--keep-requests must be a number from 0 to \(SimulatorLimits.keptRequests)",
                exitCode: 2)
        }
        try validateServerNames()
        if feedbackListen != nil, binaryListen == nil {
            throw SimulatorError(
                "--feedback-listen needs the dead tokens of the legacy gateway: add --binary-listen",
                exitCode: 2
            )
        }
        guard latencyJitterNanoseconds <= latencyNanoseconds else {
            throw SimulatorError(
                "--latency-jitter is above --latency: lower it, so that no response comes before "
                    + "its request",
                exitCode: 2)
        }
        guard (0...1).contains(badToken), (0...1).contains(unregistered),
            badToken + unregistered <= 1
        else {
            throw SimulatorError(
                "--bad-token and --unregistered must be shares from 0 to 1 that add up to at most 1",
                exitCode: 2)
        }
        guard threads >= 1, threads <= 256 else {
            throw SimulatorError("--threads must be a number from 1 to 256", exitCode: 2)
        }
        guard maxStreams >= 1 else {
            throw SimulatorError("--max-streams must be a number above 0", exitCode: 2)
        }
        try validateOutputs()
        if isFast { try validateFast() }
        if let issuedTokens, !(0...SimulatorLimits.issuedTokens).contains(issuedTokens) {
            throw SimulatorError(
                "--issue-tokens must be a number from 0 to \(SimulatorLimits.issuedTokens)",
                exitCode: 2)
        }
    }

    private func validateAddresses() throws(SimulatorError) {
        _ = try listenAddress()
        _ = try binaryListen.map { text throws(SimulatorError) in
            try Self.address(text, option: "binary-listen")
        }
        _ = try feedbackListen.map { text throws(SimulatorError) in
            try Self.address(text, option: "feedback-listen")
        }
        _ = try controlListen.map { text throws(SimulatorError) in
            try Self.address(text, option: "control-listen")
        }
    }

    private func validateServerNames() throws(SimulatorError) {
        guard serverNames.count <= SimulatorLimits.serverNames else {
            throw SimulatorError(
                "--server-name can be given at most \(SimulatorLimits.serverNames) times: remove "
                    + "some",
                exitCode: 2)
        }
        for name in serverNames where !Self.isHostName(name) {
            throw SimulatorError(
                "--server-name '\(name)' is not a host name: write it like api.push.apple.com",
                exitCode: 2)
        }
    }

    private func validateOutputs() throws(SimulatorError) {
        for (option, path) in [
            ("journal", journal), ("deliveries", deliveries), ("record", record),
        ] where path == "-" {
            throw SimulatorError(
                "--\(option) -: standard output is not supported: name a file", exitCode: 2)
        }
    }

    /// Rejects options that `isFast` does not support.
    private func validateFast() throws(SimulatorError) {
        if journal != nil {
            throw SimulatorError(
                "--fast does not support --journal: drop --journal, or --fast", exitCode: 2)
        }
        if payloadLint == .refuse {
            throw SimulatorError(
                "--fast checks no payloads: drop --payload-lint, or --fast", exitCode: 2)
        }
        for (option, value) in [
            ("scenario", scenario), ("offline", offline), ("saving-power", savingPower),
            ("deliveries", deliveries), ("control", control),
            ("control-listen", controlListen), ("record", record), ("replay", replay),
        ] where value != nil {
            throw SimulatorError(
                "--fast does not support --\(option): drop --\(option), or --fast",
                exitCode: 2)
        }
    }

    /// Returns whether a text is a host name in lower case: labels of letters, digits and hyphens.
    private static func isHostName(_ text: String) -> Bool {
        guard text.utf8.count <= 253 else { return false }
        return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.utf8.allSatisfy { byte in
                    byte == UInt8(ascii: "-")
                        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                }
        }
    }

    /// Returns the address of `--listen`: `127.0.0.1:2197`, `[::1]:0`, `localhost:2197`.
    func listenAddress() throws(SimulatorError) -> SocketAddress {
        try Self.address(listen, option: "listen")
    }

    /// Returns the address and port in an option's value.
    static func address(_ listen: String, option: String) throws(SimulatorError) -> SocketAddress {
        guard let colon = listen.lastIndex(of: ":"),
            let port = UInt16(listen[listen.index(after: colon)...])
        else { throw Self.badAddress(listen, option: option) }
        let host = String(listen[..<colon])
        if host == "localhost" { return .loopback(port: port) }
        guard let address = SocketAddress(numeric: host, port: port) else {
            throw Self.badAddress(listen, option: option)
        }
        return address
    }

    private static func badAddress(_ text: String, option: String) -> SimulatorError {
        SimulatorError(
            "--\(option) '\(text)' is not an address and port: write it like 127.0.0.1:2197 or [::1]:0",
            exitCode: 2)
    }
}
