/// What kind of notification this is: the `apns-push-type` header.
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

    /// What the topic has after the bundle ID; nil where the topic is the bundle ID itself.
    ///
    /// Apple's page prints two of these without their dot; these are the forms that work.
    public var topicSuffix: String? {
        switch self {
        case .alert, .background, .mdm: nil
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileProvider: ".pushkit.fileprovider"
        case .liveActivity: ".push-type.liveactivity"
        case .location: ".location-query"
        case .pushToTalk: ".voip-ptt"
        case .controls: ".push-type.controls"
        case .widgets: ".push-type.widgets"
        }
    }

    /// The priority that is sent where none is chosen: a background push must have 5.
    public var defaultPriority: Priority { self == .background ? .normal : .high }
}

/// How urgent a notification is: the `apns-priority` header.
public enum Priority: UInt8, Sendable, CaseIterable {
    /// 10: at once.
    case high = 10
    /// 5: when it suits the device's power.
    case normal = 5
    /// 1: power before all else; never wakes the device.
    case low = 1
}

/// Until when APNs keeps a notification for a device that is away: the `apns-expiration` header.
public enum Expiration: Sendable, Equatable {
    /// Unix seconds; 0 means one attempt, never stored.
    case at(UInt64)
    /// Seconds from the campaign's first start.
    case after(UInt64)

    /// Reads `0`, Unix seconds, or `+90s`, `+15m`, `+2h`, `+1d`; nil for anything else.
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

    /// The header's value where it does not depend on the start.
    public var fixedUnixSeconds: UInt64? {
        switch self {
        case .at(let seconds): seconds
        case .after: nil
        }
    }

    /// The header's value for a campaign first started at `startUnixSeconds`.
    public func unixSeconds(startUnixSeconds: UInt64) -> UInt64 {
        switch self {
        case .at(let seconds): seconds
        case .after(let seconds): startUnixSeconds + seconds
        }
    }

    /// Digits only: `UInt64.init` would take a sign.
    private static func number(_ text: String) -> UInt64? {
        let isDigits = text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return isDigits ? UInt64(text) : nil
    }
}
