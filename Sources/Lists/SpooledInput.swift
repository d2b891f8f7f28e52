import Campaign
internal import Glibc
package import Support

/// Standard input, copied where it can be read again.
package enum SpooledInput {
    /// A pipe whose writer is alive and silent for so long is one that was merely left open.
    static let patienceMilliseconds = 30_000

    /// How standard input differs from the list; nil where it is the same, or empty.
    package static func difference(
        of input: ListBytes, from list: ListBytes
    ) throws(BroadsideError) -> String? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 19, alignment: 4_096)
        defer { unsafe buffer.deallocate() }
        let half = buffer.count / 2
        let ours = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<half])
        var offset: UInt64 = 0
        while true {
            let count = try unsafe input.read(at: offset, into: ours)
            guard count > 0 else {
                guard offset > 0, try unsafe list.read(at: offset, into: ours) > 0 else {
                    return nil
                }
                return "it ends after \(offset) bytes"
            }
            var compared = 0
            while compared < count {
                // Room for as many bytes as are still to be compared, in the buffer's other half.
                let theirs = unsafe UnsafeMutableRawBufferPointer(
                    rebasing: buffer[half..<(half + count - compared)])
                let found = try unsafe list.read(at: offset + UInt64(compared), into: theirs)
                guard found > 0 else {
                    return "it goes on after \(offset + UInt64(compared)) bytes"
                }
                for place in 0..<found {
                    guard unsafe ours[compared + place] != theirs[place] else { continue }
                    return "byte \(offset + UInt64(compared + place) + 1) is another one"
                }
                compared += found
            }
            offset += UInt64(count)
        }
    }

    /// Whether standard input can be read, or has ended. A pipe may be one that nobody writes to.
    package static func hasInput() throws(BroadsideError) -> Bool {
        var information = stat()
        let access = fcntl(STDIN_FILENO, F_GETFL)
        guard unsafe fstat(STDIN_FILENO, &information) == 0, access >= 0,
            access & O_ACCMODE != O_WRONLY
        else { return false }
        switch information.st_mode & S_IFMT {
        case S_IFREG: return true
        case S_IFIFO, S_IFSOCK: break
        // A terminal, `/dev/null`, a directory.
        default: return false
        }
        var place = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        let step: Int32 = 100
        for _ in 0..<(patienceMilliseconds / Int(step)) {
            try SignalWatch.stopIfAsked()
            if unsafe poll(&place, 1, step) > 0 { return true }
        }
        standardErrorLine(
            "broadside: warning: standard input is open, and nothing came in "
                + "\(patienceMilliseconds / 1000) seconds: this goes on with the list that was kept, "
                + "and what comes later is not looked at")
        return false
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

    package static func copy(
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
