import Glibc

/// Memory that simulations do not free. Reactors, connections and ledgers must be freed when a
/// simulation ends.
struct LeftBehind {
    private var simulations = 0
    /// Resident bytes after the first simulations, which fill the caches of the runtime.
    private var base = 0

    private static let warmUp = 100
    /// Minimum number of simulations for a conclusion.
    private static let simulationsLeast = 400
    /// Limit on a process's growth, in bytes per simulation. It is less than the buffers of one
    /// reactor's connections.
    private static let limit = 16_384

    /// Records that another simulation is about to begin.
    mutating func noteSimulation() {
        if simulations == Self.warmUp { base = Self.residentBytes }
        simulations += 1
    }

    /// Bytes that each simulation did not free; nil if they are within the limit.
    var excess: Int? {
        guard simulations >= Self.simulationsLeast else { return nil }
        let each = (Self.residentBytes - base) / (simulations - Self.warmUp)
        return each > Self.limit ? each : nil
    }

    private static var residentBytes: Int {
        // Freed memory that was not returned yet is not a leak.
        typealias MallocTrim = @convention(c) (_ pad: Int) -> Int32
        if let trim = dlsym(nil, "malloc_trim") {
            _ = unsafeBitCast(trim, to: MallocTrim.self)(0)
        }
        let fields = readText("/proc/self/statm")?.split(separator: " ") ?? []
        let pages = fields.count > 1 ? Int(fields[1]) ?? 0 : 0
        return pages * Int(getpagesize())
    }
}
