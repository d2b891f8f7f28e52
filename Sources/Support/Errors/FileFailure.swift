internal import Glibc

/// The classification of an error number for a file or directory named by the user. Only this type
/// chooses the exit code: 2 if the request must be changed, and 5 if the same request may succeed
/// later or elsewhere. A scheduler abandons a campaign on 2 and retries on 5.
package enum FileFailure: Sendable {
    /// The file does not exist, is of the wrong kind, or is inaccessible: exit code 2.
    case unusable
    /// The machine, its limits or its disks failed: exit code 5.
    case failed

    /// - Parameter number: The value of `errno`.
    package init(errno number: Int32) {
        assert(number >= 0, "an error number is not the negative result of a call")
        switch number {
        case ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EEXIST, ENOTEMPTY, EXDEV,
            EBADF, EINVAL, ENXIO, ENODEV, ESPIPE, EOVERFLOW, EILSEQ, EADDRINUSE,
            ECONNREFUSED, EADDRNOTAVAIL, EAFNOSUPPORT, EPROTONOSUPPORT:
            self = .unusable
        // An unknown error is more likely caused by a disk or a network than by the request.
        default: self = .failed
        }
    }

    package var exitCode: Int32 {
        switch self {
        case .unusable: ExitCode.badRequest
        case .failed: ExitCode.disk
        }
    }

    /// Returns the description of an error number and its remedy.
    ///
    /// - Parameters:
    ///   - number: The value of `errno`.
    ///   - advice: The remedy if the file or directory is unusable.
    package static func message(errno number: Int32, _ advice: String) -> String {
        let failure = FileFailure(errno: number)
        return "\(describe(errno: number)): "
            + (failure == .unusable ? advice : machineAdvice(errno: number))
    }

    /// Returns the description of an error number, and its remedy, for a file in a directory that
    /// this process could write to before.
    ///
    /// - Parameters:
    ///   - number: The value of `errno`.
    ///   - directory: What the directory is, such as `ledger`.
    package static func message(errno number: Int32, inUsed directory: String) -> String {
        switch number {
        case ENOENT, ENOTDIR, EISDIR, EEXIST, ENOTEMPTY, ELOOP:
            message(
                errno: number,
                "another program removed or changed the \(directory) while it was in use: put it back"
            )
        case EINVAL, EPERM, ENOSYS, EOPNOTSUPP:
            "\(describe(errno: number)): its file system does not support all operations that a "
                + "\(directory) needs: name a \(directory) on another file system"
        default: message(errno: number, "the \(directory) must belong to this user")
        }
    }

    /// Returns the remedy if the machine is the cause.
    private static func machineAdvice(errno number: Int32) -> String {
        switch number {
        case EMFILE: "raise this process's limit on open files (ulimit -n), then try again"
        case ENFILE: "this machine has too many open files: try again later, or on another machine"
        case ENOSPC, EDQUOT: "free some space on its file system, then try again"
        case EFBIG: "raise this process's limit on the size of a file (ulimit -f), then try again"
        case EROFS:
            "its file system is read-only, as after a disk error: try again once "
                + "it is writable, or name another place"
        case ENOMEM, EAGAIN:
            "this machine has too little memory: try again later, or on another machine"
        case ESTALE:
            "its file system was replaced or mounted again: try again, or name another place"
        default: "its disk or file system failed: try again, or name another place"
        }
    }
}

extension BroadsideError {
    /// Returns an error for an unusable file or directory named by an option, or for a disk
    /// failure.
    ///
    /// - Parameters:
    ///   - number: The value of `errno`.
    ///   - advice: The remedy if the file or directory is unusable.
    package static func file(
        option: String, _ path: String, errno number: Int32, _ advice: String
    ) -> BroadsideError {
        file(InputName(path, option: option), errno: number, advice)
    }

    /// Returns an error, with exit code 5, for an output that can't be written.
    ///
    /// - Parameter name: Path of the output, or another name for it.
    package static func output(_ name: String, errno number: Int32) -> BroadsideError {
        BroadsideError(
            "\(name): \(FileFailure.message(errno: number, "name another file"))",
            exitCode: ExitCode.disk)
    }

    /// Returns an error for an unusable file or directory that the user named, or for a disk
    /// failure.
    ///
    /// - Parameters:
    ///   - number: The value of `errno`.
    ///   - advice: The remedy if the file or directory is unusable.
    package static func file(
        _ name: InputName, errno number: Int32, _ advice: String
    ) -> BroadsideError {
        BroadsideError(
            name, ": \(FileFailure.message(errno: number, advice))",
            exitCode: FileFailure(errno: number).exitCode)
    }
}
