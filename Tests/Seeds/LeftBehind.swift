import Glibc

/// What simulations leave behind in memory: reactors, connections and ledgers are to end with them.
struct LeftBehind {
    private var simulations = 0
    /// Resident bytes after the first simulations, which fill the runtime's caches.
    private var base = 0

    private static let warmUp = 100
    /// Fewer simulations say nothing.
    private static let simulationsLeast = 400
    /// Bytes per simulation by which a process may grow. The buffers of one reactor's connections are more.
    private static let limit = 16_384

    /// Another simulation is about to begin.
    mutating func noteSimulation() {
        if simulations == Self.warmUp { base = Self.residentBytes }
        simulations += 1
    }

    /// Bytes that each simulation left behind, if that is too much.
    var excess: Int? {
        guard simulations >= Self.simulationsLeast else { return nil }
        let each = (Self.residentBytes - base) / (simulations - Self.warmUp)
        return each > Self.limit ? each : nil
    }

    private static var residentBytes: Int {
        // Free memory that was not returned yet is not a leak.
        typealias MallocTrim = @convention(c) (_ pad: Int) -> Int32
        if let trim = dlsym(nil, "malloc_trim") {
            _ = unsafeBitCast(trim, to: MallocTrim.self)(0)
        }
        let fields = readText("/proc/self/statm")?.split(separator: " ") ?? []
        let pages = fields.count > 1 ? Int(fields[1]) ?? 0 : 0
        return pages * Int(getpagesize())
    }
}
