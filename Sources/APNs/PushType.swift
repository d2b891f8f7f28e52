/// The type of a notification: the `apns-push-type` header.
///
/// Source: Apple, "Sending notification requests to APNs", the header's table.
public enum PushType: String, Sendable, CaseIterable {
    case alert
    case background
    case voip
    case complication
    case fileProvider = "fileprovider"
    case mdm
    case liveActivity = "liveactivity"
    case location
    case pushToTalk = "pushtotalk"
    case controls
    case widgets
    case accessory
}

/// The urgency of a notification: the `apns-priority` header.
public enum Priority: UInt8, Sendable, CaseIterable {
    /// 10: delivered immediately.
    case high = 10
    /// 5: delivered with regard to the device's power state.
    case normal = 5
    /// 1: delivered in a way that saves power; never wakes the device.
    case low = 1
}

/// The time until which APNs keeps a notification for an unavailable device: the `apns-expiration`
/// header.
public enum Expiration: Sendable, Equatable {
    /// Unix seconds; 0 means a single attempt, never stored.
    case at(UInt64)
    /// Seconds from the first start of the campaign.
    case after(UInt64)

    /// Parses `0`, Unix seconds, or `+90s`, `+15m`, `+2h`, `+1d`; nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.first == UInt8(ascii: "+") else {
            guard let seconds = Expiration.number(text) else { return nil }
            self = .at(seconds)
            return
        }
        let factor: UInt64
        switch text.utf8.last {
        case UInt8(ascii: "s"): factor = 1
        case UInt8(ascii: "m"): factor = 60
        case UInt8(ascii: "h"): factor = 3_600
        case UInt8(ascii: "d"): factor = 86_400
        default: return nil
        }
        guard let count = Expiration.number(String(text.dropFirst().dropLast())) else {
            return nil
        }
        let (seconds, overflow) = count.multipliedReportingOverflow(by: factor)
        if overflow || seconds > UInt64(UInt32.max) { return nil }
        self = .after(seconds)
    }

    /// The header's value; nil if it depends on the campaign's first start.
    public var fixedUnixSeconds: UInt64? {
        switch self {
        case .at(let seconds): seconds
        case .after: nil
        }
    }

    /// The value as it is written in an option: Unix seconds, or seconds after the campaign's first
    /// start, such as `+7200s`.
    public var text: String {
        switch self {
        case .at(let seconds): "\(seconds)"
        case .after(let seconds): "+\(seconds)s"
        }
    }

    /// Returns the header's value for a campaign first started at `startUnixSeconds`.
    public func unixSeconds(startUnixSeconds: UInt64) -> UInt64 {
        switch self {
        case .at(let seconds): seconds
        case .after(let seconds): startUnixSeconds + seconds
        }
    }

    /// Parses a text of digits; nil for any other text. `UInt64.init` alone would accept a sign.
    private static func number(_ text: String) -> UInt64? {
        let isDigits = text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return isDigits ? UInt64(text) : nil
    }
}
