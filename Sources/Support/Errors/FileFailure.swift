internal import Glibc

/// What an error number means for a file or directory that the user named: the one place that decides
/// between exit code 2, where the request has to be changed, and 5, where the same request may succeed
/// later, or elsewhere. A scheduler gives a whole campaign up on a 2, and tries again on a 5.
package enum FileFailure: Sendable {
    /// There is no such file, or it is not what it has to be, or may not be used: exit code 2.
    case unusable
    /// The machine, its limits or its disks: exit code 5.
    case failed

    /// - Parameter number: What `errno` was.
    package init(errno number: Int32) {
        assert(number >= 0, "an error number is not the negative result of a call")
        switch number {
        case ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EEXIST, ENOTEMPTY, EXDEV,
            EBADF, EINVAL, ENXIO, ENODEV, ESPIPE, EFBIG, EOVERFLOW, EILSEQ, EADDRINUSE,
            ECONNREFUSED, EADDRNOTAVAIL, EAFNOSUPPORT, EPROTONOSUPPORT:
            self = .unusable
        // What is not known is rather a disk's or a network's than the request's.
        default: self = .failed
        }
    }

    package var exitCode: Int32 {
        switch self {
        case .unusable: ExitCode.badRequest
        case .failed: ExitCode.disk
        }
    }

    /// What an error number means, and what to do about it.
    ///
    /// - Parameters:
    ///   - number: What `errno` was.
    ///   - advice: What to do where the request is wrong.
    package static func words(errno number: Int32, _ advice: String) -> String {
        let failure = FileFailure(errno: number)
        return "\(describe(errno: number)): "
            + (failure == .unusable ? advice : machineAdvice(errno: number))
    }

    /// What to do where the machine is the cause.
    private static func machineAdvice(errno number: Int32) -> String {
        switch number {
        case EMFILE: "raise this process's limit of open files (ulimit -n), then try again"
        case ENFILE: "this machine has too many open files: try again later, or elsewhere"
        case ENOSPC, EDQUOT: "make room there, then try again"
        case EROFS:
            "its file system is read-only, as after an error of its disk: try again once it is "
                + "writable, or name another place"
        case ENOMEM, EAGAIN: "this machine has too little memory: try again later, or elsewhere"
        case ESTALE: "its file system was exchanged or mounted again: try again, or elsewhere"
        default: "its disk or file system failed: try again, or elsewhere"
        }
    }
}

extension BroadsideError {
    /// A file or directory that an option names can't be used, or its disk failed.
    ///
    /// - Parameters:
    ///   - number: What `errno` was.
    ///   - advice: What to do where the request is wrong.
    package static func file(
        option: String, _ path: String, errno number: Int32, _ advice: String
    ) -> BroadsideError {
        file(InputName(path, option: option), errno: number, advice)
    }

    /// A file or directory that the request names can't be used, or its disk failed.
    ///
    /// - Parameters:
    ///   - number: What `errno` was.
    ///   - advice: What to do where the request is wrong.
    package static func file(
        _ name: InputName, errno number: Int32, _ advice: String
    ) -> BroadsideError {
        BroadsideError(
            name, ": \(FileFailure.words(errno: number, advice))",
            exitCode: FileFailure(errno: number).exitCode)
    }
}
