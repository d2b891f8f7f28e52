import Campaign
internal import Glibc
import Support
internal import Synchronization

/// Whether reading ends where a signal to stop waits. It does while nothing but a preparation, or a
/// count, depends on it: a ledger of hundreds of millions of rows is read for half a minute.
package final class ReadingPatience: Sendable {
    private let ends = Atomic<Bool>(false)

    package var endsOnSignals: Bool {
        get { ends.load(ordering: .relaxed) }
        set { ends.store(newValue, ordering: .relaxed) }
    }
}

/// A file, to be read at any place.
final class FileBytes: LedgerBytes, Sendable {
    private let descriptor: Int32
    private let path: String
    private let patience: ReadingPatience
    let byteCount: UInt64

    /// - Parameters:
    ///   - descriptor: Its own from now on.
    ///   - path: How messages call it.
    init(_ descriptor: Int32, path: String, _ patience: ReadingPatience) {
        self.descriptor = descriptor
        self.path = path
        self.patience = patience
        let information = SystemCall.status(of: descriptor) ?? stat()
        byteCount = UInt64(information.st_size)
    }

    deinit {
        close(descriptor)
    }

    func sync() -> Bool { fsync(descriptor) == 0 }

    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        if patience.endsOnSignals, SignalWatch.isStopPending { throw LedgerError(.interrupted) }
        // SAFETY: pread(2) sets at most `buffer.count` bytes, of memory that is ours during this
        // call.
        let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
        guard count >= 0 else {
            throw LedgerError(.inputOutput, detail: "\(path): \(describe(errno: errno))")
        }
        return count
    }
}
