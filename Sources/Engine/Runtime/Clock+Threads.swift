import BroadsideSupport
internal import Glibc

extension Clock {
    /// CPU time of the calling thread so far.
    static func threadUse(_ now: Now) -> ThreadUse {
        var cpu = timespec()
        // SAFETY: clock_gettime(2) sets the timespec, which is local to this call.
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu)
        return ThreadUse(
            cpuNanoseconds: UInt64(cpu.tv_sec) * second + UInt64(cpu.tv_nsec),
            atNanoseconds: now.nanoseconds)
    }
}
