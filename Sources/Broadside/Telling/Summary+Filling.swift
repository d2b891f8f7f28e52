import APNs
import Campaign
internal import Glibc

extension Summary {
    /// Takes the states over that a ledger tells.
    mutating func take(_ ledger: LedgerSummary, rows: UInt64?) {
        accepted = ledger.count(.accepted)
        rejected = ledger.count(.rejected)
        invalid = ledger.count(.invalid)
        skipped = ledger.count(.skipped)
        failed = ledger.count(.failed)
        unknown = ledger.count(.unknown)
        inDoubt = ledger.count(.inDoubt)
        reasons = ledger.reasons.named
        setRows(rows)
    }

    /// Takes the states over that this process counted; the run is the campaign's first.
    mutating func take(_ statistics: RunStatistics, rows: UInt64?) {
        accepted = statistics.accepted
        rejected = statistics.rejected
        invalid = statistics.invalid
        skipped = statistics.skipped
        failed = statistics.failed
        unknown = statistics.unknown
        reasons = statistics.reasons.named
        setRows(rows)
    }

    private mutating func setRows(_ rows: UInt64?) {
        self.rows = rows
        let settled = accepted + rejected + invalid + skipped + failed + unknown
        remaining = rows.map { $0 - min($0, settled) }
    }

    /// Takes over what the ledger's telemetry says of the latest run; what it does not say stays
    /// unknown.
    mutating func take(_ telemetry: Telemetry, run number: UInt32) {
        guard let run = telemetry.runs.last, run.number == number else { return }
        elapsedSeconds = run.elapsedSeconds
        let answers = run.points.reduce(0) { $0 + $1.answers }
        if run.elapsedSeconds > 0, answers > 0 {
            notificationsPerSecond = Double(answers) / run.elapsedSeconds
        }
        // What is kept of times to answer is that of all runs.
        if telemetry.runs.count == 1, number == 1 { latency = Latency(telemetry.latency) }
        let total = run.limited.reduce(0, +)
        if total > 0, run.limited.count == LimitedBy.allCases.count {
            limitedBy = [:]
            for cause in LimitedBy.allCases {
                limitedBy?[cause.name] = Double(run.limited[cause.rawValue]) / Double(total)
            }
        }
        inFlightMost = run.points.lazy.map(\.inFlight).max()
    }

    /// Takes over what only this process knows.
    mutating func take(
        use: ProcessUse, statistics: RunStatistics, latency: borrowing LatencyHistogram,
        elapsed: Double, requests: UInt64
    ) {
        elapsedSeconds = elapsed
        fallbacks = statistics.fallbacks
        let answers = latency.count + statistics.untimedAnswers
        notificationsPerSecond = elapsed > 0 ? Double(answers) / elapsed : 0
        if requests > 0 {
            cpuMicrosecondsPerNotification = use.cpuMicroseconds / Double(requests)
        }
        peakResidentBytes = use.peakResidentBytes
        self.latency = Latency()
        self.latency.p50 = Latency.milliseconds(latency.quantile(0.5))
        self.latency.p90 = Latency.milliseconds(latency.quantile(0.9))
        self.latency.p99 = Latency.milliseconds(latency.quantile(0.99))
        self.latency.p999 = Latency.milliseconds(latency.quantile(0.999))
        if latency.count > 0 {
            self.latency.max = Latency.milliseconds(latency.maximumNanoseconds)
        }
        paced = statistics.pace.worst.map { "answers slow down under load, \($0.words)" }
        let total = statistics.limited.reduce(0, +)
        // Where nothing was measured nothing is known.
        guard total > 0 else {
            limitedBy = nil
            return
        }
        limitedBy = Dictionary(
            uniqueKeysWithValues: LimitedBy.allCases.map {
                ($0.name, Double(statistics.limited[$0.rawValue]) / Double(total))
            })
    }

    /// Writes the JSON where the options say, and the text for people where they watch.
    func write(to options: SendOptions) throws(BroadsideError) {
        if let path = options.summary {
            if path == "-" {
                try writeToStandardOutput()
            } else {
                try replaceFile(path, with: json())
            }
        }
        if options.progress != .none, !campaign.isEmpty {
            standardError(
                folded(String(text.dropLast()), indent: Self.valueColumn, for: STDERR_FILENO))
        }
    }
}

extension Summary {
    /// A reader that takes nothing must not keep the run from ending.
    private func writeToStandardOutput() throws(BroadsideError) {
        let output = OutputQueue.standardOutput
        output.put(String(decoding: json(), as: UTF8.self))
        switch output.finish() {
        case .written, .failed(EPIPE): return
        case .failed(let number):
            throw BroadsideError("standard output: \(describe(errno: number))", exitCode: 5)
        case .stuck:
            Broadside.standardError(
                "broadside: warning: nothing reads standard output: the summary is lost there; "
                    + "broadside ledger stats shows the counts")
        }
    }
}

/// Writes all bytes to a descriptor.
func writeAll(_ bytes: [UInt8], to descriptor: Int32, name: String) throws(BroadsideError) {
    let result = unsafe bytes.withUnsafeBytes { buffer in
        Result { () throws(BroadsideError) in
            unsafe try writeAll(buffer, to: descriptor, name: name)
        }
    }
    try result.get()
}

/// Writes all bytes, however many calls it takes.
func writeAll(
    _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, name: String
) throws(BroadsideError) {
    guard try unsafe writeUnlessClosed(bytes, to: descriptor, name: name) else {
        throw BroadsideError("\(name): \(describe(errno: EPIPE))", exitCode: 5)
    }
}

/// Writes all bytes to where a reader may go away.
///
/// - Returns: false where it has.
func writeUnlessClosed(
    _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, name: String
) throws(BroadsideError) -> Bool {
    var written = 0
    while written < bytes.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count = unsafe write(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        if count < 0, errno == EPIPE { return false }
        guard count > 0 else {
            throw BroadsideError("\(name): \(describe(errno: errno))", exitCode: 5)
        }
        written += count
    }
    return true
}

/// Where a file is written before it is put in its place. Random, so that in a directory of everybody's
/// nobody can lay a file or a link there before, and because a killed process may have left its own.
func temporaryName(of path: String) -> String {
    "\(path).\(String(UInt32.random(in: 0 ... .max), radix: 16)).new"
}

/// Writes a file beside its place and renames it: never half.
///
/// A device or a pipe is written to as it is: renaming a file over it would take it away.
///
/// - Parameter patienceMilliseconds: how long a pipe or a device may take nothing, or have no reader.
func replaceFile(
    _ path: String, with bytes: [UInt8], patienceMilliseconds: Int32 = 5_000
) throws(BroadsideError) {
    if isSpecialFile(path) {
        return try writeToSpecialFile(path, bytes, patienceMilliseconds: patienceMilliseconds)
    }
    let temporary = temporaryName(of: path)
    let descriptor = unsafe open(
        temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
        throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
    }
    defer { close(descriptor) }
    do throws(BroadsideError) {
        try writeAll(bytes, to: descriptor, name: path)
        guard unsafe rename(temporary, path) == 0 else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
    } catch {
        _ = unsafe unlink(temporary)
        throw error
    }
}

/// Writes to a pipe or a device, which may have no reader, or one that has stopped reading.
private func writeToSpecialFile(
    _ path: String, _ bytes: [UInt8], patienceMilliseconds: Int32
) throws(BroadsideError) {
    func failure(_ text: String) -> BroadsideError {
        BroadsideError("\(path): \(text)", exitCode: 5)
    }
    var descriptor: Int32 = -1
    var waited: Int32 = 0
    repeat {
        descriptor = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        if descriptor >= 0 { break }
        guard errno == ENXIO else { throw failure(describe(errno: errno)) }
        // A pipe without a reader.
        usleep(10_000)
        waited += 10
    } while waited < patienceMilliseconds
    guard descriptor >= 0 else { throw failure("nobody reads this pipe: start its reader first") }
    defer { close(descriptor) }
    var written = 0
    while written < bytes.count {
        let count = unsafe bytes.withUnsafeBytes {
            unsafe write(descriptor, $0.baseAddress.unsafelyUnwrapped + written, $0.count - written)
        }
        if count > 0 {
            written += count
        } else if count < 0, errno == EAGAIN {
            var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let ready = unsafe poll(&room, 1, patienceMilliseconds)
            guard ready != 0 else { throw failure("its reader takes nothing") }
        } else if count < 0, errno == EPIPE {
            // What the run did stands, whether it is read or not.
            return
        } else if count == 0 || errno != EINTR {
            throw failure(describe(errno: errno))
        }
    }
}

/// Whether something stands there that is no regular file.
func isSpecialFile(_ path: String) -> Bool {
    var information = stat()
    guard unsafe stat(path, &information) == 0 else { return false }
    return information.st_mode & S_IFMT != S_IFREG
}

/// Better known before the night than after it.
func checkWritable(_ path: String, option: String) throws(BroadsideError) {
    try OutputRule.checkPlace(option: option, path: path)
    var information = stat()
    if unsafe stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR {
        throw .usage(option, "\(path) is a directory: name a file in it")
    }
    if isSpecialFile(path) { return }
    let probe = temporaryName(of: path)
    let descriptor = unsafe open(
        probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
        throw .usage(option, "\(path): \(describe(errno: errno)): name a place to write to")
    }
    close(descriptor)
    _ = unsafe unlink(probe)
}
