package import BroadsideAPNs
import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideSupport

extension Plan {
    /// Maximum age of a past expiration that is accepted as intended, in seconds.
    private static let pastSecondsLimit: UInt64 = 86_400
    /// One year, in seconds. A smaller value was probably meant as a duration and not as a date.
    private static let durationSecondsLimit: UInt64 = 366 * 86_400

    /// Refuses an expiration far in the past, because APNs would try to deliver each notification
    /// only once and store none.
    ///
    /// A campaign that has begun may continue after its expiration.
    ///
    /// - Returns: A warning if the expiration has passed but is accepted.
    static func checkExpiration(
        _ options: SendOptions, _ now: Now
    ) throws(BroadsideError) -> String? {
        guard let expiration = options.expiration, expiration.fixedUnixSeconds != 0 else {
            return nil
        }
        var begun: Manifest?
        if options.resumes, let ledger = options.ledger {
            let directory = LedgerDirectory.unlocked(ledger)
            if try directory.hasManifest { begun = try directory.readManifest() }
        }
        guard let seconds = begun?.expirationSeconds ?? expiration.fixedUnixSeconds,
            seconds <= now.wallMilliseconds / 1000
        else { return nil }
        let time = "\(timeText(seconds * 1000).dropLast(5))Z"
        guard begun == nil, seconds + pastSecondsLimit < now.wallMilliseconds / 1000 else {
            return
                "--expiration \(expiration.text) passed at \(time): APNs tries to deliver each "
                + "notification only once, and does not store it"
        }
        let advice: String
        if let date = basicDate(seconds) {
            advice = "did you mean \(date)?"
        } else if seconds < durationSecondsLimit {
            advice = "did you mean +\(seconds)s?"
        } else {
            advice = "write a future time, or a time after the first start, such as +2h"
        }
        throw .usage("expiration", "\(seconds) is \(time), which has passed: \(advice)")
    }

    /// Formats `20261123` as `2026-11-23`; nil if it is not a date.
    private static func basicDate(_ value: UInt64) -> String? {
        let digits = String(value)
        guard digits.utf8.count == 8 else { return nil }
        let text = "\(digits.prefix(4))-\(digits.dropFirst(4).prefix(2))-\(digits.suffix(2))"
        return milliseconds(text) == nil ? nil : text
    }
}

/// Parses an expiration: `0`, Unix seconds, `+90s`, or ISO 8601; nil for other texts. An ISO 8601
/// text without a time or without seconds means the last moment of that day or minute.
package func expiration(_ text: String) -> Expiration? {
    if let value = Expiration(text) { return value }
    guard text.contains("-"), let time = milliseconds(text), time > 0 else { return nil }
    return .at(UInt64(time) / 1000)
}

private func milliseconds(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    return WrittenTime(bytes.rawSpan)?.last
}
