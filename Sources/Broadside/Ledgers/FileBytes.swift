import Campaign
internal import Glibc

/// A file, to be read at any place.
final class FileBytes: LedgerBytes, Sendable {
    private let descriptor: Int32
    private let path: String
    let byteCount: UInt64

    init(_ path: String) throws(BroadsideError) {
        self.path = path
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
        var information = stat()
        unsafe fstat(descriptor, &information)
        byteCount = UInt64(information.st_size)
    }

    deinit {
        close(descriptor)
    }

    func sync() -> Bool { fsync(descriptor) == 0 }

    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
        guard count >= 0 else {
            throw LedgerError(.inputOutput, detail: "\(path): \(describe(errno: errno))")
        }
        return count
    }
}
