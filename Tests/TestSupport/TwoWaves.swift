import Foundation

/// A campaign in two waves: rows in UTC are sent at once, those in Tokyo wait for the end of quiet hours, in which it
/// is there now. A run with a clock that is three hours ahead sends these, too.
package struct TwoWaves {
    /// Options of the send; the list has the columns `token` and `tz`.
    package let options: [String]
    /// The clock of a later run and of its server.
    package static let later = "+3h"

    package init() {
        let minute = Int(Date().timeIntervalSince1970) / 60 + 9 * 60
        let hours = [minute - 60, minute + 90].map { minute in
            String(format: "%02d:%02d", minute / 60 % 24, minute % 60)
        }
        options = ["--zone-column", "tz", "--quiet", hours.joined(separator: "-")]
    }

    /// The zone of a row: each third one is in the second wave.
    package static func zone(_ row: Int) -> String { isLater(row) ? "Asia/Tokyo" : "UTC" }

    package static func isLater(_ row: Int) -> Bool { row % 3 == 1 }

    /// Waits until a run has sent its first wave and waits for the next.
    package static func wait(_ sending: Subprocess, of campaign: Campaign) throws {
        try sending.wait {
            let status = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "status"], in: campaign.directory)
            let isWaiting = status.output.split(separator: "\n").contains { line in
                line.hasPrefix("phase ") && line.hasSuffix(" waiting")
            }
            return isWaiting && (try? campaign.statistics().accepted) ?? 0 > 0
        }
    }
}
