internal import Glibc

/// Returns the directory for data that does not fit into memory.
package func temporaryDirectory() -> String {
    SystemCall.environment("TMPDIR") ?? "/var/tmp"
}

/// Opens a nameless file that is removed when the process ends for any reason; readable only by the
/// owner.
package func openNameless(in directory: String) throws(BroadsideError) -> Int32 {
    let name = "\(directory)/.broadside-\(hexadecimal(UInt64.random(in: 0 ... .max)))"
    let descriptor = SystemCall.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
        throw BroadsideError(
            "\(directory): \(describe(errno: errno)): set TMPDIR to a writable directory",
            exitCode: 5)
    }
    SystemCall.unlink(name)
    return descriptor
}
