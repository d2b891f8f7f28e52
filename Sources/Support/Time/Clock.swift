internal import Glibc

/// The only source of the current time.
package enum Clock {
    package static func now() -> Now {
        // This clock also counts the time in which the machine is suspended, because other machines
        // forget its connections meanwhile.
        var monotonic = timespec()
        var wall = timespec()
        // SAFETY: both are local variables that the calls write.
        unsafe clock_gettime(CLOCK_BOOTTIME, &monotonic)
        unsafe clock_gettime(CLOCK_REALTIME, &wall)
        return Now(
            nanoseconds: UInt64(monotonic.tv_sec) * second + UInt64(monotonic.tv_nsec),
            // A clock that was never set may be negative, which counts as 1970.
            wallMilliseconds: UInt64(max(0, wall.tv_sec)) * 1000
                + UInt64(wall.tv_nsec) / 1_000_000)
    }
}
