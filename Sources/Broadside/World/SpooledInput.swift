import Campaign
internal import Glibc
import Support

/// Standard input, copied where it can be read again.
enum SpooledInput {
    /// Keeps standard input, decoded, in a ledger's directory, unless an earlier run did.
    ///
    /// - Returns: The path of the copy.
    static func spool(into directory: LedgerDirectory) throws(BroadsideError) -> String {
        if directory.hasManifest {
            guard directory.hasSpool else {
                throw .usage(
                    "tokens",
                    "-: the campaign of --ledger \(directory.path) was begun with a file: "
                        + "name it")
            }
            return directory.spoolPath
        }
        let input = try ListBytes(opening: ListBytes.standardInput, option: "tokens")
        let descriptor = try directory.createFile(LedgerDirectory.spoolName)
        defer { close(descriptor) }
        do throws(BroadsideError) {
            try copy(input, to: descriptor, name: directory.spoolPath)
            try directory.putInPlace(LedgerDirectory.spoolName, descriptor)
        } catch {
            directory.discardFile(LedgerDirectory.spoolName)
            throw error
        }
        return directory.spoolPath
    }

    /// Copies standard input, decoded, into a nameless temporary file.
    ///
    /// - Returns: A descriptor, now the caller's.
    static func spoolAside() throws(BroadsideError) -> Int32 {
        let input = try ListBytes(opening: ListBytes.standardInput, option: "tokens")
        let descriptor = try openNameless(in: temporaryDirectory())
        do throws(BroadsideError) {
            try copy(input, to: descriptor, name: "a temporary file in \(temporaryDirectory())")
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func copy(
        _ input: ListBytes, to descriptor: Int32, name: String
    ) throws(BroadsideError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 4_096)
        defer { unsafe buffer.deallocate() }
        var offset: UInt64 = 0
        while true {
            let count = try unsafe input.read(at: offset, into: buffer)
            if count == 0 { return }
            let piece = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
            try unsafe writeAll(piece, to: descriptor, name: name)
            offset += UInt64(count)
        }
    }
}
