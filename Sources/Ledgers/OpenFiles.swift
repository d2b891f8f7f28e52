import BroadsideSupport
internal import Glibc
internal import Synchronization

/// Descriptors of the files that are being read at any place, of which only so many are open at a time.
///
/// A ledger has a segment for each reactor of each run, and a command may read thousands of ledgers. The
/// file that was used longest ago is closed where there are too many, and opened again when it is used.
final class OpenFiles: Sendable {
    /// Those of this process.
    static let shared = OpenFiles(limit: OpenFiles.share(of: SystemCall.raiseOpenFileLimit()))

    private struct File {
        var descriptor: Int32
        /// Reads that are under way.
        var readCount: Int
        /// When it was used last, in uses of any file.
        var lastUse: UInt64
    }

    private struct State {
        var files: [ObjectIdentifier: File] = [:]
        var useCount: UInt64 = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The most files that are open while none of them is being read.
    init(limit: Int) { self.limit = limit }

    /// A quarter of what the process may open; connections and outputs need theirs.
    static func share(of all: UInt64) -> Int { Int(min(max(all / 4, 16), 512)) }

    /// How many files are open.
    var count: Int { state.withLock { $0.files.count } }

    /// Takes a descriptor over, as a file's.
    func add(_ descriptor: Int32, of file: ObjectIdentifier) {
        _ = adopt(descriptor, of: file)
        end(file)
    }

    /// Closes what is left of a file that is not read any more.
    func remove(_ file: ObjectIdentifier) {
        let found = state.withLock { $0.files.removeValue(forKey: file) }
        if let found { close(found.descriptor) }
    }

    /// Has a file's descriptor open for the time of a call.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - open: Opens it again; negative where that is not possible, and errno says why.
    ///   - body: Uses the descriptor.
    /// - Returns: What `body` returns; nil where it can't be opened, and errno says why.
    func use<Value>(
        _ file: ObjectIdentifier, open: () -> Int32, _ body: (Int32) -> Value
    ) -> Value? {
        guard let descriptor = begin(file, open) else { return nil }
        defer { end(file) }
        return body(descriptor)
    }

    private func begin(_ file: ObjectIdentifier, _ open: () -> Int32) -> Int32? {
        if let descriptor = state.withLock({ Self.take(file, of: &$0) }) { return descriptor }
        var descriptor = open()
        if descriptor < 0, errno == EMFILE {
            state.withLock { Self.closeOldest(of: &$0, downTo: 0, but: file) }
            descriptor = open()
        }
        return descriptor < 0 ? nil : adopt(descriptor, of: file)
    }

    /// Takes a descriptor over and begins to use it, or the one that another thread has opened meanwhile.
    private func adopt(_ descriptor: Int32, of file: ObjectIdentifier) -> Int32 {
        state.withLock { state in
            assert(descriptor >= 0, "only an open file is kept")
            if let found = Self.take(file, of: &state) {
                close(descriptor)
                return found
            }
            state.useCount += 1
            state.files[file] = File(
                descriptor: descriptor, readCount: 1, lastUse: state.useCount)
            Self.closeOldest(of: &state, downTo: limit, but: file)
            return descriptor
        }
    }

    private func end(_ file: ObjectIdentifier) {
        state.withLock { state in
            guard var found = state.files[file] else { return }
            assert(found.readCount > 0, "each read ends once")
            found.readCount -= 1
            state.files[file] = found
        }
    }

    private static func take(_ file: ObjectIdentifier, of state: inout State) -> Int32? {
        guard var found = state.files[file] else { return nil }
        state.useCount += 1
        found.lastUse = state.useCount
        found.readCount += 1
        state.files[file] = found
        return found.descriptor
    }

    /// Closes files that are not being read, the one that was used longest ago first.
    private static func closeOldest(
        of state: inout State, downTo limit: Int, but file: ObjectIdentifier
    ) {
        while state.files.count > limit {
            let idle = state.files.lazy.filter { $0.value.readCount == 0 && $0.key != file }
            guard let oldest = idle.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
            close(oldest.value.descriptor)
            state.files[oldest.key] = nil
        }
    }
}
