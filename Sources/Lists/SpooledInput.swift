package import BroadsideSupport
internal import Glibc

/// Copying of standard input to a file that can be read again.
package enum SpooledInput {
    /// If an open pipe delivers nothing for this long, the run stops waiting for it.
    static let patienceMilliseconds = 30_000

    /// Returns a text that describes how standard input differs from the list; nil if standard
    /// input is empty or does not differ.
    ///
    /// - Parameters:
    ///   - input: Standard input.
    ///   - list: The list.
    ///   - isErased: Whether a byte of the list, the first argument, may have replaced a byte of
    ///     the input, the second argument, at an erasure. Such bytes are not compared.
    package static func difference(
        of input: ListBytes, from list: ListBytes,
        isErased: (UInt8, UInt8) -> Bool = { _, _ in false }
    ) throws(BroadsideError) -> String? {
        var hasErasure = false
        func described(_ difference: String) -> String {
            difference + (hasErasure ? "; rows that ledger forget erased were not compared" : "")
        }
        var ours = ReadBuffer(byteCount: 1 << 18)
        var theirs = ReadBuffer(byteCount: ours.capacity)
        var offset: UInt64 = 0
        while true {
            let count = try input.read(at: offset, into: &ours)
            guard count > 0 else {
                guard offset > 0, try list.read(at: offset, into: &theirs) > 0 else {
                    return nil
                }
                return described("it ends after \(offset) bytes")
            }
            var compared = 0
            while compared < count {
                let found = try list.read(
                    at: offset + UInt64(compared), into: &theirs, limit: count - compared)
                guard found > 0 else {
                    return described("it continues after \(offset + UInt64(compared)) bytes")
                }
                for place in 0..<found
                where ours.bytes.byte(at: compared + place) != theirs.bytes.byte(at: place) {
                    let given = ours.bytes.byte(at: compared + place)
                    guard isErased(theirs.bytes.byte(at: place), given) else {
                        return described(
                            "byte \(offset + UInt64(compared + place) + 1) differs")
                    }
                    hasErasure = true
                }
                compared += found
                assert(compared <= count, "so many bytes were not asked for")
            }
            offset += UInt64(count)
        }
    }

    /// Whether standard input can be read, or has ended. Waits for `patienceMilliseconds` at most,
    /// because the writer of a pipe may never write.
    package static func hasInput() throws(BroadsideError) -> Bool {
        let access = fcntl(STDIN_FILENO, F_GETFL)
        guard let information = SystemCall.status(of: STDIN_FILENO), access >= 0,
            access & O_ACCMODE != O_WRONLY
        else { return false }
        switch information.st_mode & S_IFMT {
        case S_IFREG: return true
        case S_IFIFO, S_IFSOCK: break
        // For example a terminal, `/dev/null` or a directory.
        default: return false
        }
        let step: Int32 = 100
        for _ in 0..<(patienceMilliseconds / Int(step)) {
            try SignalWatch.stopIfRequested()
            if SystemCall.poll(STDIN_FILENO, POLLIN, step) > 0 { return true }
        }
        standardErrorLine(
            "broadside: warning: standard input is open, but nothing arrived in "
                + "\(patienceMilliseconds / 1000) seconds: the run continues with the "
                + "list that was kept, and reads nothing that arrives later")
        return false
    }

    /// Copies standard input, decoded, to a temporary file without a name.
    ///
    /// - Returns: A descriptor, which the caller owns.
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
        var buffer = ReadBuffer(byteCount: 1 << 18)
        var offset: UInt64 = 0
        while true {
            let count = try input.read(at: offset, into: &buffer)
            if count == 0 { return }
            try writeAll(buffer.bytes, to: descriptor, name: name)
            offset += UInt64(count)
        }
    }
}
