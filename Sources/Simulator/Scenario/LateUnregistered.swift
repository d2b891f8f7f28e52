internal import BroadsideSupport

/// Dead tokens that APNs reports late and irregularly.
///
/// A 410 may come days after the removal of an app. Until then, and sometimes in between, APNs
/// responds with 200.
struct LateUnregistered: Sendable, Equatable {
    /// Maximum time from the start of the scenario to the first 410 of a token. Each token has its
    /// own random time up to this maximum.
    var withinNanoseconds: UInt64
    /// Probability of a 410 for each request after the token's random time has passed.
    var share = 1.0

    /// Returns whether a request for a dead token gets a 410.
    ///
    /// - Parameters:
    ///   - fingerprint: The device token's hash.
    ///   - elapsedNanoseconds: Time since the start of the scenario.
    ///   - chance: A uniform value in 0..<1.
    func isReported(
        _ fingerprint: UInt64, elapsedNanoseconds: UInt64, chance: Double
    ) -> Bool {
        let moment = Double(splitmix64(fingerprint) >> 11) * 0x1p-53 * Double(withinNanoseconds)
        return Double(elapsedNanoseconds) >= moment && chance < share
    }
}
