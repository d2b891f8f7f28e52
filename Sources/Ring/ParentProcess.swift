internal import CBroadsideLiburing
internal import Glibc

/// The process that started this one.
public enum ParentProcess {
    /// Ends this process when that one is gone, however it went (prctl(2), PR_SET_PDEATHSIG).
    ///
    /// - Parameter identifier: Its id; where it is gone already, this process ends at once.
    public static func endWith(_ identifier: Int32) {
        _ = ring_die_with_parent()
        if getppid() != identifier { kill(getpid(), SIGKILL) }
    }
}
