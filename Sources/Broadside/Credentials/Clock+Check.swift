import BroadsideSupport

extension Clock {
    /// Refuses a clock that was never set, because it would give provider tokens and ledgers wrong
    /// dates.
    ///
    /// - Throws: Exit code 5 if its time is before 2001.
    static func checkThatItIsSet() throws(BroadsideError) {
        let wall = now().wallMilliseconds
        guard wall / 1000 < earliestSeconds else { return }
        throw BroadsideError(
            "this machine's clock was never set (it says "
                + "\(wall < 1000 ? "1970 or earlier" : timeText(wall))), but provider tokens and "
                + "ledgers need the right time: set the clock (timedatectl set-ntp true), then try "
                + "again", exitCode: ExitCode.disk)
    }

    /// Earliest time that a clock shows if it was set: 2001, in seconds since 1970.
    private static let earliestSeconds: UInt64 = 978_307_200
}
