internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc
internal import Synchronization

/// Setting for reading a ledger: whether a pending stop signal ends the reading. The setting is
/// true during preparations and while rows are counted, because reading a ledger of hundreds of
/// millions of rows takes half a minute.
package final class ReadingPatience: Sendable {
    private let ends = Atomic<Bool>(false)

    package var endsOnSignals: Bool {
        get { ends.load(ordering: .relaxed) }
        set { ends.store(newValue, ordering: .relaxed) }
    }
}

/// File for reading at any offset. It is closed between reads if too many files are open
/// (`OpenFiles`).
final class FileBytes: LedgerBytes, Sendable {
    private let path: String
    private let patience: ReadingPatience
    private let files: OpenFiles
    /// Expected identity of the file when it is opened again.
    private let identity: FileIdentity?
    let byteCount: UInt64

    /// - Parameters:
    ///   - descriptor: Descriptor of the file, owned by this value.
    ///   - path: Path for opening it again and for messages.
    /// - Throws: An error if the file's size is unknown. The file is not treated as empty, because
    ///   it may record rows that were sent.
    init(
        _ descriptor: Int32, path: String, _ patience: ReadingPatience,
        files: OpenFiles = .shared
    ) throws(BroadsideError) {
        guard let information = SystemCall.status(of: descriptor) else {
            let code = errno
            close(descriptor)
            throw BroadsideError("\(path): \(describe(errno: code))", exitCode: ExitCode.disk)
        }
        self.path = path
        self.patience = patience
        self.files = files
        byteCount = UInt64(information.st_size)
        identity = FileIdentity(descriptor: descriptor)
        files.add(descriptor, of: ObjectIdentifier(self))
    }

    deinit {
        files.remove(ObjectIdentifier(self))
    }

    /// Passes the open file's descriptor to `body`. Returns nil, with `errno`, if the file can't be
    /// opened.
    private func use<Value>(_ body: (Int32) -> Value) -> Value? {
        files.use(
            ObjectIdentifier(self),
            open: {
                let descriptor = SystemCall.open(
                    path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                guard descriptor >= 0, FileIdentity(descriptor: descriptor) != identity else {
                    return descriptor
                }
                // The path now leads to another file.
                close(descriptor)
                errno = ESTALE
                return -1
            }, body)
    }

    func sync() -> Bool { use { fsync($0) == 0 } ?? false }

    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        if patience.endsOnSignals, SignalWatch.isStopPending { throw LedgerError(.interrupted) }
        guard offset <= UInt64(Int64.max) else { return 0 }
        let read = use { descriptor in
            // SAFETY: pread(2) sets at most `buffer.count` bytes, of memory that is ours during
            // this call.
            let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            return (count: count, code: errno)
        }
        guard let read, read.count >= 0 else {
            let code = read?.code ?? errno
            throw LedgerError(.inputOutput, detail: "\(path): \(describe(errno: code))")
        }
        return read.count
    }
}
