import Foundation
import Glibc

/// What this process uses of its machine, and what belongs to it alone.
struct Usage: Sendable {
    var residentBytes = 0
    var descriptors = 0
    /// Resource limits.
    var limits: String
    /// Blocked signals by thread.
    var signalMasks: [String: String] = [:]

    init() throws {
        Self.returnFreeMemory()
        let files = FileManager.default
        let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        residentBytes = (Int(status.split(separator: " ")[1]) ?? 0) * 4096
        limits = try String(contentsOfFile: "/proc/self/limits", encoding: .utf8)
        for thread in try files.contentsOfDirectory(atPath: "/proc/self/task") {
            let status = try? String(
                contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)
            signalMasks[thread] = status?.split(separator: "\n").first { $0.hasPrefix("SigBlk") }
                .map(String.init)
        }
        // One descriptor lists the others.
        descriptors = try files.contentsOfDirectory(atPath: "/proc/self/fd").count - 1
    }

    var threads: Int { signalMasks.count }

    /// Whether each thread that still exists blocks the same signals.
    func hasSameMasks(as other: Usage) -> Bool {
        signalMasks.allSatisfy { thread, mask in (other.signalMasks[thread] ?? mask) == mask }
    }

    /// Gives the allocator's free pages back to the system, so that only used memory is resident.
    private static func returnFreeMemory() {
        // <malloc.h> is not among the headers that Swift imports.
        typealias Trim = @convention(c) (Int) -> Int32
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }

    /// Lowers a limit, so that it could be raised.
    static func lowerFileLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max - 1, 1_000)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
