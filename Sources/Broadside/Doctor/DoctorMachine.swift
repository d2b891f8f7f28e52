import BroadsideEngine
import BroadsideLedgers
import BroadsideRing
import BroadsideSupport
internal import Glibc

/// The checks of this machine, without the network.
enum DoctorMachine {
    /// Number of connections to which a run grows by default, and number of reactors that these
    /// connections keep busy.
    private static let (connections, reactors) = (64, 2)
    /// A warning appears if fewer bytes than this are free. A ledger of 40 million rows has this
    /// size.
    private static let leastFreeByteCount: UInt64 = 1 << 30
    /// Size of a test write in bytes, and number of test writes. Each test write is synced, as a
    /// reactor's writes are.
    private static let (syncByteCount, syncs) = (16_384, 5)
    /// A sync that takes at least this long slows down a fast run, which syncs about once per
    /// second.
    private static let slowSync = 500 * millisecond

    /// Checks io_uring, threads, the limits, OpenSSL's encryption, and the disk of a ledger.
    ///
    /// - Parameter ledger: Path of a future ledger; nil: no disk is checked.
    /// - Returns: False if no run can start on this machine.
    static func examine(_ report: inout DoctorReport, ledger: String?) -> Bool {
        ResourceLimits.raise()
        var canRun = true
        do {
            try ReactorThread.tryRings(1)
            report.add("io_uring", .ok, "available")
        } catch {
            report.add("io_uring", .failed, "\(error)", advice: "no run can start without io_uring")
            canRun = false
        }
        canRun = examineThreads(&report) && canRun
        canRun = examineMemory(&report, allowed: SystemCall.addressSpaceLimit) && canRun
        canRun = examineOpenFiles(&report, allowed: ResourceLimits.openFiles) && canRun
        report.add(
            "memory lock", .ok,
            ResourceLimits.lockedMemory.map { "\(byteCountText($0)) allowed" } ?? "unlimited")
        // This is never a warning, because encryption works either way.
        let encryption = MachineDescription.current().encryption
        report.add("encryption", .ok, encryption.detail, advice: encryption.advice)
        if let ledger { canRun = examineDisk(&report, of: ledger) && canRun }
        return canRun
    }

    /// Checks that the threads of the smallest run can be started.
    private static func examineThreads(_ report: inout DoctorReport) -> Bool {
        let count = RunShape.threads(reactors: 1)
        do {
            try WorkerThread.checkThatSystemGives(count, fewer: nil)
        } catch {
            report.add(
                "threads", .failed, error.message,
                advice: "no run can start without \(count) threads")
            return false
        }
        report.add("threads", .ok, "\(count) can be started, as a run with one reactor needs")
        return true
    }

    /// Checks the limit on address space.
    ///
    /// - Parameter allowed: The limit, bytes; nil if there is none.
    /// - Returns: False if not even one reactor is possible.
    static func examineMemory(_ report: inout DoctorReport, allowed: UInt64?) -> Bool {
        let needed = RunShape.addressSpace(reactors: 1)
        guard let allowed else {
            report.add("memory", .ok, "address space is unlimited")
            return true
        }
        let isEnough = allowed >= needed
        report.add(
            "memory", isEnough ? .ok : .failed,
            "\(byteCountText(allowed)) of address space allowed, a run with one reactor needs "
                + byteCountText(needed),
            advice: isEnough
                ? nil
                : "raise the limit (ulimit -v \(needed >> 10)), or limit memory by a control group")
        return isEnough
    }

    /// Checks the limit on open files.
    ///
    /// - Parameter allowed: Limit on the process's open files.
    /// - Returns: False if not even one connection is possible.
    static func examineOpenFiles(_ report: inout DoctorReport, allowed: UInt64) -> Bool {
        let needed = RunShape.descriptors(connections, reactors: reactors)
        let least = RunShape.descriptors(1, reactors: 1)
        let (isEnough, isPossible) = (allowed >= UInt64(needed), allowed >= UInt64(least))
        report.add(
            "open files", isEnough ? .ok : isPossible ? .warning : .failed,
            "\(grouped(allowed)) allowed, "
                + (isPossible
                    ? "\(connections) connections need \(needed)"
                    : "even one connection needs \(least)"),
            advice: isEnough
                ? nil : "raise the limit: ulimit -n \(needed), or LimitNOFILE= in a unit")
        return isPossible
    }

    /// Checks the free space and speed of the disk on which a ledger would be, without leaving
    /// files on it.
    private static func examineDisk(_ report: inout DoctorReport, of ledger: String) -> Bool {
        if FileIdentity(path: ledger)?.isDirectory == false {
            report.add(
                "ledger disk", .failed, "\(ledger) is a file",
                advice: "name a directory that does not exist yet")
            return false
        }
        if LedgerDirectory.leadsNowhere(ledger) {
            report.add(
                "ledger disk", .failed, "\(ledger) is a symbolic link that leads nowhere",
                advice: "put its target back, or name another directory")
            return false
        }
        let path = absolutePath(ledger)
        let folder = path.parts(atLast: "/").map { String($0.before) } ?? "/"
        let parent = folder.isEmpty ? "/" : folder
        let descriptor: Int32
        do {
            descriptor = try openNameless(in: parent)
        } catch {
            report.add(
                "ledger disk", .failed, "\(parent): \(describe(errno: errno))",
                advice: "name a ledger in a directory that exists and can be written to")
            return false
        }
        defer { close(descriptor) }
        let free = SystemCall.freeByteCount(of: descriptor) ?? 0
        let block = [UInt8](repeating: 0x5a, count: syncByteCount)
        var times: [UInt64] = []
        for _ in 0..<syncs {
            let start = Clock.now().nanoseconds
            guard SystemCall.write(descriptor, block.rawSpan) == block.count, fsync(descriptor) == 0
            else {
                report.add(
                    "ledger disk", .failed, "\(parent): \(describe(errno: errno))",
                    advice: "a ledger cannot be written there: free some space, or name another "
                        + "disk")
                return false
            }
            times.append(Clock.now().nanoseconds - start)
        }
        times.sort()
        let sync = times[times.count / 2]
        let isSlow = sync > slowSync
        let isFull = free < leastFreeByteCount
        report.add(
            "ledger disk", isSlow || isFull ? .warning : .ok,
            "\(byteCountText(free)) free in \(parent), a sync takes \(latencyText(sync))",
            advice: isFull
                ? "a ledger needs up to 24 bytes per accepted row, and about 100 bytes per row in "
                    + "any other state: free some space"
                : isSlow ? "a run waits for this disk before it sends: use a faster disk" : nil)
        return true
    }

    /// Formats a size, such as `12.3 GiB`.
    private static func byteCountText(_ count: UInt64) -> String {
        var (value, unit) = (Double(count), "bytes")
        for next in ["KiB", "MiB", "GiB", "TiB"] where value >= 1024 {
            (value, unit) = (value / 1024, next)
        }
        return unit == "bytes" ? "\(count) bytes" : "\(decimal(value, places: 1)) \(unit)"
    }
}
