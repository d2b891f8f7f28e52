import BroadsideSupport

extension Clock {
    /// Refuses to date provider tokens and ledgers with a clock that was never set.
    ///
    /// - Throws: Exit code 5 if its time is before 2001.
    static func checkThatItIsSet() throws(BroadsideError) {
        let wall = now().wallMilliseconds
        guard wall / 1000 < earliestSeconds else { return }
        throw BroadsideError(
            "this machine's clock was never set: it says "
                + "\(wall < 1000 ? "1970 or earlier" : timeText(wall)), and provider "
                + "tokens and ledgers depend on it: set it (timedatectl set-ntp true), "
                + "then try again", exitCode: ExitCode.disk)
    }

    /// Earliest time of a clock that is set, seconds since 1970: 2001.
    private static let earliestSeconds: UInt64 = 978_307_200
}
