internal import Glibc

/// Whole files of a few kilobytes.
enum PrivateFile {
    static let limit = 1 << 20

    /// Creates a file with a mode from its first instant on, or replaces one.
    static func write(_ path: String, _ octets: [UInt8], mode: mode_t) throws(SimulatorError) {
        try write(path, mode: mode) { append throws(SimulatorError) in try append(octets) }
    }

    /// The same, piece by piece: what the closure appends is written as it goes.
    static func write(
        _ path: String, mode: mode_t,
        _ body: (_ append: ([UInt8]) throws(SimulatorError) -> Void) throws(SimulatorError) -> Void
    ) throws(SimulatorError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            throw SimulatorError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
        defer { _ = close(descriptor) }
        // The mode of a file that was there already, whatever the umask.
        _ = fchmod(descriptor, mode)
        var waiting: [UInt8] = []
        try body { octets throws(SimulatorError) in
            waiting += octets
            guard waiting.count >= pieceCount else { return }
            try writeAll(waiting, to: descriptor, path)
            waiting.removeAll(keepingCapacity: true)
        }
        try writeAll(waiting, to: descriptor, path)
    }

    private static let pieceCount = 1 << 16

    private static func writeAll(
        _ octets: [UInt8], to descriptor: Int32, _ path: String
    ) throws(SimulatorError) {
        var offset = 0
        while offset < octets.count {
            let count = unsafe octets.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress! + offset, $0.count - offset)
            }
            guard count > 0 else {
                throw SimulatorError("\(path): \(describe(errno: errno))", exitCode: 5)
            }
            offset += count
        }
    }

    /// A file's octets.
    static func read(
        _ path: String, option: String, limit: Int = PrivateFile.limit
    ) throws(SimulatorError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw SimulatorError("\(option) \(path): \(describe(errno: errno))", exitCode: 2)
        }
        defer { _ = close(descriptor) }
        var octets: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: pieceCount)
        while octets.count < limit {
            let count = unsafe Glibc.read(descriptor, &piece, piece.count)
            guard count > 0 else { break }
            octets += piece[..<count]
        }
        return octets
    }
}
