public import Broadside
@_exported public import BroadsideSimulator
public import FoundationEssentials
internal import Synchronization

/// A simulated APNs for one test. It has its own directory, which is removed at the end.
public final class SimulatedAPNs: Sendable {
    /// The simulated APNs of the running test; nil without the trait `.simulatedAPNs`.
    @TaskLocal public static var current: SimulatedAPNs?

    /// Directory for files of the test.
    public let directory: URL
    private let endpoint: ProviderEndpoint
    private let totals = Mutex<SimulatorTotals?>(nil)

    /// Starts listening on a free port of 127.0.0.1.
    ///
    /// - Parameter configure: Changes the simulator's options, such as the share of dead tokens.
    public init(_ configure: (inout SimulatorOptions) -> Void = { _ in }) throws {
        directory = FileManager.default.temporaryDirectory
            .appending(path: "simulated-apns-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var options = SimulatorOptions(
            state: directory.appending(path: "apns").path(percentEncoded: false))
        options.listen = "127.0.0.1:0"
        options.raisesProcessLimits = false
        options.isControlledHere = true
        options.journal = directory.appending(path: "journal").path(percentEncoded: false)
        configure(&options)
        do {
            endpoint = try ProviderEndpoint(options)
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// The server, for campaigns and clients.
    public var server: APNsServer {
        .other(host: "127.0.0.1", port: endpoint.port, authorities: endpoint.state.file("ca.pem"))
    }

    /// A credential that the server accepts.
    public var credential: APNsCredential {
        .keyFile(
            URL(filePath: endpoint.state.authKeyFile), keyID: endpoint.state.keyID,
            teamID: endpoint.state.teamID)
    }

    /// Topic of the simulated app.
    public var topic: String { endpoint.state.topic }

    /// The lines of the journal, one per request: microseconds, connection, stream, apns-id, token,
    /// status and reason, separated by commas. They are complete once the server is stopped.
    public var journal: [String] {
        get throws {
            try String(contentsOf: directory.appending(path: "journal"), encoding: .utf8)
                .split(separator: "\n").dropFirst().map(String.init)
        }
    }

    /// Executes a command of the control socket, such as `received` or `outcome TOKEN
    /// Unregistered`, and returns its response, a JSON object on one line.
    @discardableResult
    public func control(_ command: String) -> String { endpoint.control(command) }

    /// Stops the server, and returns the counts of its connections, requests and responses.
    @discardableResult
    public func stop() -> SimulatorTotals {
        totals.withLock { totals in
            let counted = totals ?? endpoint.stop()
            totals = counted
            return counted
        }
    }
}
