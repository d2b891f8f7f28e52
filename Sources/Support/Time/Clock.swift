internal import Glibc

/// The time, asked in one place.
package enum Clock {
    package static func now() -> Now {
        var monotonic = timespec()
        var wall = timespec()
        // SAFETY: both are locals, which the calls set.
        unsafe clock_gettime(CLOCK_MONOTONIC, &monotonic)
        unsafe clock_gettime(CLOCK_REALTIME, &wall)
        return Now(
            nanoseconds: UInt64(monotonic.tv_sec) * second + UInt64(monotonic.tv_nsec),
            // A clock that was never set may say less: that is 1970, too.
            wallMilliseconds: UInt64(max(0, wall.tv_sec)) * 1000
                + UInt64(wall.tv_nsec) / 1_000_000)
    }
}
