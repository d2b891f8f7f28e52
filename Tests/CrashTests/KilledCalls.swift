import BroadsideTestSupport

/// The calls at which a test kills a command: all of them in `tools/test --full`, otherwise every third call and the
/// last six, at which files get their names.
enum KilledCalls {
    private static let step = TestSize.isFull ? 1 : 3
    private static let last = 6

    /// Kills one process at each of these calls.
    ///
    /// - Parameter kill: Starts a process that is killed at its nth call, and checks what it leaves. False if it came
    ///   to its end before that call.
    /// - Returns: How many calls a process makes.
    static func each(_ kill: (Int) throws -> Bool) rethrows -> Int {
        var end = 1
        while try kill(end) { end += step }
        guard step > 1 else { return end - 1 }
        // The last call is one of the three before this one.
        var call = max(1, end - step - last + 1)
        while true {
            let wasKilled = call < end && call % step == 1
            guard try wasKilled || kill(call) else { return call - 1 }
            call += 1
        }
    }
}
