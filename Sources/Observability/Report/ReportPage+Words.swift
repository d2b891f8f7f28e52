import BroadsideAPNs
import BroadsideEngine
import BroadsidePolicy
import BroadsideSupport

/// The texts of the page.
extension ReportPage {
    /// Returns what a row's reason means, and what to do about it.
    func meaning(of reason: String) -> String {
        if let known = Reason(text: reason) {
            return known.meaning(hasSuppressionList: data.summary.hasSuppressionList)
        }
        return reason == "\(LengthRequired.reason)"
            ? StopAdvice.lengthRequired : StopAdvice.unknownReason
    }

    /// Time such as `2026-11-21 23:55 UTC`.
    static func time(_ milliseconds: UInt64, withSeconds: Bool = false) -> String {
        let text = timeText(milliseconds)
        let clock = text.dropFirst(11).prefix(withSeconds ? 8 : 5)
        // A time is never wrapped. Narrow tables scroll instead.
        return "\(text.prefix(10))\u{a0}\(clock)\u{a0}UTC"
    }
}
