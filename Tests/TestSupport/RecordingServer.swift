import Foundation
import Synchronization

/// `Tests/Servers/apns.py`: a small APNs that writes down what it gets, byte for byte, and answers
/// as its behaviour says.
package final class RecordingServer {
    package let port: Int
    private let process: Subprocess
    private let directory: TemporaryDirectory
    private let record: String
    private let reading = Mutex(Reading())

    /// What was read of the record so far.
    private struct Reading {
        var byteCount: UInt64 = 0
        var events: [RecordedEvent] = []
    }

    /// Where it writes down what happens, a line of JSON each.
    package var recordPath: String { record }

    /// - Parameters:
    ///   - behaviour: One of the script's functions, with dashes; see there.
    ///   - more: The script's further options.
    ///   - identity: Its certificate; nil: localhost's.
    ///   - script: One that is built on `apns.py`, or takes its options.
    ///   - python: The interpreter; nil: the one in PATH. Only Debian's has its packages.
    package init(
        _ behaviour: String = "plain", _ more: [String] = [], identity: ServerIdentity? = nil,
        script: String = "apns.py", python: String? = nil
    ) throws {
        let identity = try identity ?? TestAuthority.shared().localhost
        directory = try TemporaryDirectory()
        record = "\(directory.path)/record"
        process = try PythonServer.start(
            script,
            [
                "--certificate", identity.certificate, "--key", identity.key, "--record", record,
                "--behaviour", behaviour,
            ] + more, in: directory, python: python)
        port = try Self.announcedPort(process)
    }

    deinit {
        stop()
    }

    /// Ends the server. Its release ends it, too.
    package func stop() {
        process.stop()
    }

    private static let processesToEnd = Mutex<[pid_t]>([])
    private static let watchesExit: Void = {
        atexit {
            let processes = RecordingServer.processesToEnd.withLock { $0 }
            for process in processes { kill(process, SIGTERM) }
        }
    }()

    /// Returns a server that ends with the test process, for a static value, which is never
    /// released.
    package func endingAtExit() -> RecordingServer {
        _ = Self.watchesExit
        Self.processesToEnd.withLock { $0.append(process.identifier) }
        return self
    }

    private static func announcedPort(_ process: Subprocess) throws -> Int {
        for _ in 0..<6000 {
            let output = FileManager.default.contents(atPath: process.outputPath) ?? Data()
            let line = String(decoding: output, as: UTF8.self)
            if line.hasPrefix("listening on "), line.hasSuffix("\n"),
                let port = Int(line.dropFirst(13).dropLast())
            {
                return port
            }
            guard process.isRunning else {
                let errors = FileManager.default.contents(atPath: process.errorsPath) ?? Data()
                throw TestFailure("apns.py ended: \(String(decoding: errors, as: UTF8.self))")
            }
            usleep(10_000)
        }
        throw TestFailure("apns.py did not say its port within 60 s")
    }

    /// Lets a behaviour go on that waits for it.
    package func goOn() throws { try Data().write(to: URL(filePath: record + ".go")) }

    /// Where a client finds it.
    package var endpoint: String { "localhost:\(port)" }

    /// What happened, in order, once the server has seen the ends of all connections: it writes an
    /// answer down after it was sent, when the client may be gone already. Where some stay open,
    /// what happened until nothing more did. A server that waits for a core still has something to do.
    package func events() throws -> [RecordedEvent] {
        var events = try eventsSoFar()
        var (quiet, looks) = (0, 0)
        while quiet < 50, looks < 3000, Self.hasOpenConnections(events) {
            looks += 1
            usleep(20_000)
            let isAsleep = process.isAsleep
            let more = try eventsSoFar()
            quiet = isAsleep && more.count == events.count ? quiet + 1 : 0
            events = more
        }
        return events
    }

    private static func hasOpenConnections(_ events: [RecordedEvent]) -> Bool {
        func connections(_ names: Set<String>) -> Set<Int> {
            Set(events.filter { names.contains($0.event) }.compactMap(\.connection))
        }
        return !connections(["preface"]).isSubset(of: connections(["end", "failed"]))
    }

    /// How many requests were answered so far, or left without an answer, while the run goes on.
    package func answerCount() throws -> Int {
        try eventsSoFar().count { $0.event == "answer" }
    }

    /// What happened so far, in order, during a run.
    package func eventsSoFar() throws -> [RecordedEvent] {
        try reading.withLock { reading in
            let file = try FileHandle(forReadingFrom: URL(filePath: record))
            defer { try? file.close() }
            try file.seek(toOffset: reading.byteCount)
            let text = try file.readToEnd() ?? Data()
            // The server may be writing: its last line counts once its end is there.
            guard let last = text.lastIndex(of: 0x0a) else { return reading.events }
            let decoder = JSONDecoder()
            for line in text[...last].split(separator: 0x0a) {
                reading.events.append(try decoder.decode(RecordedEvent.self, from: line))
            }
            reading.byteCount += UInt64(last + 1 - text.startIndex)
            return reading.events
        }
    }

    /// The paths of requests, each with what was done about it, in order.
    package func answers() throws -> [RecordedEvent] {
        try events().filter { $0.event == "answer" }
    }

    /// How often each row's token was `action`: `taken` where the server acted on it.
    package func tally(_ tokens: DeviceTokens, _ actions: Set<String> = ["taken"]) throws -> Tally {
        var log = ""
        for answer in try answers() where actions.contains(answer.action ?? "") {
            log += (answer.path ?? "") + "\n"
        }
        return tokens.tally(log: Data(log.utf8), mark: "/3/device/")
    }
}

/// A line of the record. Which fields there are depends on `event`.
package struct RecordedEvent: Decodable, Sendable {
    package var event: String
    package var connection: Int?
    package var stream: Int?
    package var kind: Int?
    package var flags: Int?
    /// Hexadecimal.
    package var payload: String?
    package var path: String?
    package var action: String?
    package var body: String?
    /// The header block, hexadecimal, where the request is one of those recorded in detail.
    package var block: String?
    package var fields: [RecordedField]?
    /// The size of the dynamic table after the block.
    package var table: Int?
    package var most_open: Int?
    package var sound: Bool?
    package var tls: String?
    package var alpn: String?
}

/// A field of a header block, and how it was represented.
package struct RecordedField: Decodable, Sendable, Equatable {
    /// `indexed`, `incremental`, `without` (indexing), `never` (indexed) or `size` (update).
    package var form: String
    /// Of the field or its name; 0 where the name is written out.
    package var index: Int
    package var name: String
    package var value: String
    package var evicts: Bool?
}
