internal import BroadsideRing
internal import Glibc
internal import BroadsideSupport
internal import Synchronization

/// A local APNs server: the HTTP/2 provider API on a port of this machine.
///
/// Each thread has its own ring, and its own listening socket on the same port (SO_REUSEPORT). The
/// kernel distributes connections among the sockets.
public final class ProviderEndpoint: Sendable {
    /// The numeric address and port of the listener: `127.0.0.1:2197`, `[::1]:2197`.
    public let address: String
    /// The port of the listener.
    public let port: UInt16
    /// The directory with the files that clients need.
    public let state: StateDirectory
    private let options: SimulatorOptions
    private let threads: [EndpointThread]
    private let journal: JournalFile?
    private let shared: EndpointShared
    private let devices: DeviceStore?
    private let control: ControlSocket?
    private let controlEndpoint: Mutex<ControlEndpoint?>
    let commands: ControlCommands
    private let instruments: Instruments
    /// The address and port of the HTTP endpoint for commands; nil if there is none.
    public let controlAddress: String?
    private let gateway: LegacyService?
    private let feedback: LegacyService?
    private let start: ClockStart

    /// Starts listening. When this returns, connections are accepted.
    public init(_ options: SimulatorOptions) throws(SimulatorError) {
        self.options = options
        let state = try Self.openState(options)
        self.state = state
        let credentials = try state.credentials(environment: options.environment)
        let start = ClockStart.now()
        self.start = start
        let scenario = try options.scenario.map(Scenario.find)
        let shared = EndpointShared(
            scenario: scenario.map { ScenarioRun($0, now: start.nanoseconds) })
        self.shared = shared
        // Steps that end what is started below, for the case that a later step fails.
        var undo: [() -> Void] = []
        do throws(SimulatorError) {
            let devices = try Self.deviceStore(options)
            undo.append { _ = devices?.finish() }
            self.devices = devices
            let channels = ChannelStore(seed: options.seed, devices: devices)
            let trust = try options.issuedTokens.map { count throws(SimulatorError) in
                try state.issueTokens(count, environment: options.environment)
            }
            let goneTime = Self.goneTime(options, state, hasIssuedTokens: trust != nil, start)
            let instruments = try Self.instruments(options)
            undo.append { _ = instruments.recording?.finish() }
            self.instruments = instruments
            // Commands are accepted before the first connection.
            let commands = ControlCommands(
                shared: shared, devices: devices, channels: channels, start: start,
                instruments: instruments, scenario: scenario)
            self.commands = commands
            let endpoint = try options.controlListen.map { listen throws(SimulatorError) in
                try ControlEndpoint(listen: listen, commands: commands)
            }
            controlAddress = endpoint?.address
            controlEndpoint = Mutex(endpoint)
            let control = try options.control.map { path throws(SimulatorError) in
                try ControlSocket(path: path) { commands.deferredResponse($0) }
            }
            undo.append { control?.stop() }
            self.control = control
            var (listeners, address) = try Self.listen(options)
            undo.append { for listener in listeners { Socket.close(listener) } }
            (self.address, port) = (address.description, address.port)
            let journal = try options.journal.map(JournalFile.init(path:))
            undo.append { journal?.finish() }
            self.journal = journal
            let threads = try Self.startThreads(&listeners, credentials, shared: shared) { number in
                WorkerContext(
                    options: options, tokenTopics: credentials.topics, keys: credentials.keys,
                    journal: journal, start: start,
                    seed: UInt64(number) << 40 ^ start.nanoseconds, devices: devices, trust: trust,
                    goneTime: goneTime, channels: channels, instruments: instruments)
            }
            undo.append { Self.end(threads, shared) }
            self.threads = threads
            shared.setThreads(threads)
            // Applies commands that arrived while the threads started.
            shared.wake()
            let legacy = LegacyContext(
                outcome: TokenOutcome(
                    badToken: options.badToken, unregistered: options.unregistered,
                    seed: options.seed), trust: trust, certificates: credentials.certificates,
                devices: devices, shared: shared, journal: journal, start: start,
                payloadLint: options.payloadLint, instruments: instruments)
            let gateway = try Self.legacyService(.gateway, options, state, legacy)
            undo.append { _ = gateway?.stop() }
            self.gateway = gateway
            feedback = try Self.legacyService(.feedback, options, state, legacy)
        } catch {
            for step in undo.reversed() { step() }
            throw error
        }
    }

    /// Checks the options, and opens the state directory.
    private static func openState(
        _ options: SimulatorOptions
    ) throws(SimulatorError) -> StateDirectory {
        try options.validate()
        try checkAddresses(options)
        if options.raisesProcessLimits { ResourceLimits.raise() }
        let state = try StateDirectory(path: options.state, serverNames: options.serverNames)
        try refuseOutputsOverInputs(options, state)
        return state
    }

    /// Returns the time at which unregistered tokens became unregistered.
    ///
    /// - Parameter hasIssuedTokens: Whether device tokens were issued.
    private static func goneTime(
        _ options: SimulatorOptions, _ state: StateDirectory, hasIssuedTokens: Bool,
        _ start: ClockStart
    ) -> GoneTime {
        if let goneAt = options.goneAt {
            return GoneTime(goneAt, startMilliseconds: start.microseconds / 1000)
        }
        return hasIssuedTokens
            ? .after(issuedMilliseconds: state.tokensIssuedMilliseconds) : .computed
    }

    /// Starts one thread per listening socket and transfers the socket to it.
    ///
    /// - Parameters:
    ///   - listeners: The listening sockets. Those that were transferred are removed.
    ///   - context: Creates the context of the thread with the given number. It is called on that
    ///     thread.
    private static func startThreads(
        _ listeners: inout [Int32], _ credentials: EndpointCredentials, shared: EndpointShared,
        context: @escaping @Sendable (Int) -> WorkerContext
    ) throws(SimulatorError) -> [EndpointThread] {
        var threads: [EndpointThread] = []
        do throws(SimulatorError) {
            while let listener = listeners.first {
                let number = threads.count
                let thread = try EndpointThread { (stopDescriptor, isReady) throws(RingError) in
                    defer { Socket.close(listener) }
                    let worker = try EndpointWorker(
                        context: context(number), credentials: credentials, listener: listener,
                        stopDescriptor: stopDescriptor, shared: shared)
                    isReady()
                    try worker.run()
                    return worker.finish()
                }
                threads.append(thread)
                listeners.removeFirst()
            }
            for thread in threads { try thread.waitUntilReady() }
        } catch {
            end(threads, shared)
            throw error
        }
        return threads
    }

    private static func end(_ threads: [EndpointThread], _ shared: EndpointShared) {
        shared.isStopping = true
        for thread in threads { thread.wake() }
        for thread in threads { _ = thread.join() }
    }

    /// Starts the legacy gateway or the feedback service if requested.
    private static func legacyService(
        _ kind: LegacyService.Kind, _ options: SimulatorOptions, _ state: StateDirectory,
        _ legacy: LegacyContext
    ) throws(SimulatorError) -> LegacyService? {
        let (listen, option) =
            switch kind {
            case .gateway: (options.binaryListen, "binary-listen")
            case .feedback: (options.feedbackListen, "feedback-listen")
            }
        guard let listen else { return nil }
        return try LegacyService(
            kind, listen: try SimulatorOptions.address(listen, option: option),
            tls: try state.legacyContext(), legacy: legacy)
    }

    /// Rejects an output file (journal, deliveries or recording) that is also an input file,
    /// because opening an output truncates the file.
    private static func refuseOutputsOverInputs(
        _ options: SimulatorOptions, _ state: StateDirectory
    ) throws(SimulatorError) {
        let inputs = [
            options.offline, options.savingPower, options.scenario, options.replay,
        ].compactMap { $0 }
        var taken = state.files + inputs
        for (option, path) in [
            ("journal", options.journal), ("deliveries", options.deliveries),
            ("record", options.record),
        ] {
            guard let path else { continue }
            // A file that does not exist yet is identified only by its path.
            let file = FileIdentity(path: path)
            if let other = taken.first(where: {
                $0 == path || file?.isRegular == true && FileIdentity(path: $0) == file
            }) {
                throw SimulatorError(
                    "--\(option) \(path) would overwrite \(other): name another file",
                    exitCode: 2)
            }
            taken.append(path)
        }
    }

    private static func instruments(
        _ options: SimulatorOptions
    ) throws(SimulatorError) -> Instruments {
        var instruments = Instruments()
        instruments.replay = try options.replay.map { path throws(SimulatorError) in
            try Replay(path: path)
        }
        instruments.recording = try options.record.map { path throws(SimulatorError) in
            try ResponseFile(path: path)
        }
        guard options.isControllable else { return instruments }
        instruments.outcomes = ChosenOutcomes()
        instruments.expiredTokens = ExpiredTokens()
        if options.keptRequests > 0 {
            instruments.received = ReceivedLog(limit: options.keptRequests)
        }
        return instruments
    }

    private static func deviceStore(
        _ options: SimulatorOptions
    ) throws(SimulatorError) -> DeviceStore? {
        let asked = [
            options.offline, options.savingPower, options.deliveries,
        ]
        guard options.isControllable || asked.contains(where: { $0 != nil }) else { return nil }
        return try DeviceStore(
            offline: try DeviceCondition(.offline, option: options.offline, seed: options.seed),
            savingPower: try DeviceCondition(
                .savingPower, option: options.savingPower, seed: options.seed),
            deliveries: options.deliveries,
            rules: .init(
                store: options.storeRule, keepNanoseconds: options.storeNanoseconds,
                groupNanoseconds: options.groupNanoseconds))
    }

    /// Ends all connections and threads, and writes the buffered lines of the journal. Must be
    /// called exactly once.
    public func stop() -> SimulatorTotals {
        var totals = SimulatorTotals()
        // Ends commands that wait for requests.
        shared.isStopping = true
        control?.stop()
        controlEndpoint.withLock { $0 = nil }
        if let gateway { totals.add(gateway.stop()) }
        if let feedback { totals.add(feedback.stop()) }
        for thread in threads { thread.wake() }
        for thread in threads { totals.add(thread.join()) }
        journal?.finish()
        if let recording = instruments.recording, !recording.finish() {
            totals.recordingFailed = true
        }
        totals.replay = instruments.replay?.totals
        if let devices {
            totals.devices = devices.totals(microseconds: start.microsecondsNow())
            if !devices.finish() { totals.deliveriesFailed = true }
        }
        return totals
    }

    /// Executes a command of the control socket, such as `status`. Returns its response, a JSON
    /// object on one line. See `SimulatorOptions.isControlledHere`.
    public func control(_ command: String) -> String { commands.response(command) }

    /// Number of complete requests so far, updated with a short delay.
    public var requestCount: UInt64 { shared.totalCounts.requests }

    /// Whether a connection had to wait because no more files could be opened.
    public var wasOutOfFiles: Bool { shared.wasOutOfFiles }

    /// A command line that sends to this endpoint. It lacks only the user's own files.
    public var sendCommand: [String] {
        command("send", to: address)
            + ["--auth-key", state.authKeyFile, "--key-id", state.keyID]
            + ["--team-id", state.teamID, "--topic", state.topic] + environment + files
    }

    /// The other services, each with its address and an example command line.
    public var otherServices: [(place: String, command: [String])] {
        let identity = [
            "--certificate", state.file("client.pem"), "--private-key", state.file("client.key"),
        ]
        var services: [(place: String, command: [String])] = []
        if let controlAddress {
            services.append(
                ("control on \(controlAddress)", ["curl", "-s", "http://\(controlAddress)/status"]))
        }
        if let gateway {
            services.append(
                (
                    "binary gateway on \(gateway.address)",
                    command("send", to: gateway.address) + ["--protocol", "binary"] + identity
                        + environment + files
                ))
        }
        if let feedback {
            services.append(
                (
                    "feedback service on \(feedback.address)",
                    command("feedback", to: feedback.address) + identity + ["--ledger", "FEEDBACK"]
                ))
        }
        return services
    }

    private func command(_ name: String, to address: String) -> [String] {
        var place = address
        // A wildcard address cannot be connected to.
        if let port = address.split(separator: ":").last,
            address == "0.0.0.0:\(port)" || address == "[::]:\(port)"
        {
            place = "localhost:\(port)"
        }
        return [
            "broadside", name, "--endpoint", place, "--ca-file", state.file("ca.pem"),
        ]
    }

    /// The option of `send` that names the environment, unless it is the default.
    private var environment: [String] {
        options.environment == .production
            ? [] : ["--environment", options.environment.rawValue]
    }

    private var files: [String] {
        ["--tokens", "TOKENS", "--payload", "PAYLOAD", "--ledger", "LEDGER"]
    }

    /// Checks that the ports are free, before the state directory is filled. Otherwise, a start with
    /// a wrong port would leave a new directory.
    private static func checkAddresses(_ options: SimulatorOptions) throws(SimulatorError) {
        for (option, listen) in [
            ("listen", options.listen), ("binary-listen", options.binaryListen),
            ("feedback-listen", options.feedbackListen),
            ("control-listen", options.controlListen),
        ] {
            guard let listen else { continue }
            let address = try SimulatorOptions.address(listen, option: option)
            do throws(RingError) {
                try Socket.checkFree(address)
            } catch {
                throw SimulatorError("--\(option): \(error.description)", exitCode: 1)
            }
        }
    }

    /// Returns one listening socket per thread, all on the same address.
    private static func listen(
        _ options: SimulatorOptions
    ) throws(SimulatorError) -> (listeners: [Int32], address: SocketAddress) {
        var address = try options.listenAddress()
        var listeners: [Int32] = []
        do throws(RingError) {
            if options.threads > 1 {
                // SO_REUSEPORT would share the port with another simulator, so this checks that
                // none is running.
                Socket.close(try Socket.listen(on: address))
            }
            for _ in 0..<options.threads {
                let listener = try Socket.listen(
                    on: address, sharedPort: options.threads > 1)
                listeners.append(listener)
                address = try Socket.localAddress(of: listener)
            }
        } catch {
            for listener in listeners { Socket.close(listener) }
            throw SimulatorError("--listen: \(error.description)", exitCode: 1)
        }
        return (listeners, address)
    }
}
