internal import CBroadsideLiburing
internal import Glibc

/// The process that started this one.
public enum ParentProcess {
    /// Ends this process when its parent has ended in any way (prctl(2), PR_SET_PDEATHSIG).
    ///
    /// - Parameter identifier: ID of the parent; if it has already ended, this process ends
    ///   immediately.
    public static func endWith(_ identifier: Int32) {
        _ = ring_die_with_parent()
        if getppid() != identifier { kill(getpid(), SIGKILL) }
    }
}
