internal import CBroadsideLiburing
internal import Glibc

/// The process that started this one.
public enum ParentProcess {
    /// Ends this process as soon as its parent ends for any reason (prctl(2), PR_SET_PDEATHSIG).
    ///
    /// - Parameter identifier: ID of the parent. If the parent has already ended, this process ends
    ///   immediately.
    public static func endWith(_ identifier: Int32) {
        _ = ring_die_with_parent()
        if getppid() != identifier { kill(getpid(), SIGKILL) }
    }
}
