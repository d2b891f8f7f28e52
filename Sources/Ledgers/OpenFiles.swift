import BroadsideSupport
internal import Glibc
internal import Synchronization

/// Descriptors of files that are read at any offset. The number of open files is limited.
///
/// A ledger has a segment for each reactor of each run, and a command may read thousands of
/// ledgers. Beyond the limit, the least recently used file is closed. It is opened again at its
/// next use.
final class OpenFiles: Sendable {
    /// The open files of this process.
    static let shared = OpenFiles(
        limit: OpenFiles.share(
            of: SystemCall.openFileLimit(raised: HostedRun.current?.raisesLimits ?? true)))

    private struct File {
        var descriptor: Int32
        /// Number of reads of this file in progress.
        var readCount: Int
        /// Number of uses of all files up to the last use of this file. It shows which file was
        /// used last.
        var lastUse: UInt64
    }

    private struct State {
        var files: [ObjectIdentifier: File] = [:]
        var useCount: UInt64 = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: Maximum number of open files, apart from files that are being read.
    init(limit: Int) { self.limit = limit }

    /// Returns a quarter of the process's limit on open files, but at least 16 and at most 512. The
    /// remaining descriptors are left for connections and outputs.
    static func share(of all: UInt64) -> Int { Int(min(max(all / 4, 16), 512)) }

    /// Number of open files.
    var count: Int { state.withLock { $0.files.count } }

    /// Takes ownership of the descriptor of a file.
    func add(_ descriptor: Int32, of file: ObjectIdentifier) {
        _ = adopt(descriptor, of: file)
        end(file)
    }

    /// Closes the descriptor, if any, of a file that is no longer read.
    func remove(_ file: ObjectIdentifier) {
        let found = state.withLock { state in
            assert(state.files[file]?.readCount ?? 0 == 0, "a file is not closed while it is read")
            return state.files.removeValue(forKey: file)
        }
        if let found { close(found.descriptor) }
    }

    /// Opens a file for the duration of a call.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - open: Opens the file again. Returns its descriptor, or a negative number with errno on
    ///     failure.
    ///   - body: Uses the descriptor.
    /// - Returns: The result of `body`; nil with errno if the file can't be opened.
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

    /// Takes ownership of a descriptor and starts using it. If another thread has opened the file
    /// meanwhile, uses that thread's descriptor.
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

    /// Closes the least recently used files that are not being read.
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
