import BroadsideSupport

/// What devices reported about a campaign, by arm (`report --receipts`).
package struct ReceiptFindings: Sendable {
    /// Numbers of an arm: its devices, and the devices that opened the notification.
    package struct Arm: Sendable {
        /// Name; `all` in a campaign without arms.
        package var name: String
        package var isHoldout: Bool
        /// Number of devices that got the notification. For the holdout, number of devices in it.
        package var devices: UInt64 = 0
        /// Number of devices to which a request was sent; for the holdout, the number of its
        /// devices. The holdout includes devices with dead tokens, so comparisons with the holdout
        /// use this number.
        package var sent: UInt64 = 0
        /// Number of devices that opened the notification: those with a receipt.
        package var opened: UInt64 = 0
        /// For each hour after a device's row was settled, the number of devices whose first
        /// receipt is from that hour. The last entry counts all devices with a later first receipt.
        package var hours = [UInt64](repeating: 0, count: ReceiptFindings.hourCount + 1)
        /// Number of devices by column, then by the value of that column in the device's first
        /// receipt.
        package var values: [[UInt64]]

        package init(name: String, isHoldout: Bool, columns: Int) {
            self.name = name
            self.isHoldout = isHoldout
            values = Array(repeating: [], count: columns)
        }

        /// Share of the devices that opened the notification.
        package var proportion: Proportion { Proportion(count: opened, of: devices) }

        /// Devices that opened the notification, as a share of the devices to which a request was
        /// sent. Only comparisons with the holdout use it.
        var proportionOfSent: Proportion { Proportion(count: opened, of: max(sent, devices)) }
    }

    /// A column of the receipts file, and the values found in that column.
    package struct Column: Sendable {
        package var name: String
        package var values: [String]

        package init(name: String, values: [String]) {
            self.name = name
            self.values = values
        }
    }

    /// Comparison of two arms.
    struct Comparison {
        var first: Arm
        var second: Arm
        var difference: Proportion.Difference

        /// The names of both arms, such as `a - holdout`.
        var name: String { "\(first.name) \u{2212} \(second.name)" }

        /// The text that interprets the difference.
        var verdict: String {
            if difference.isInconclusive { return "too small to tell" }
            let better = difference.difference > 0 ? first.name : second.name
            return "\(better) opens more"
        }
    }

    /// Number of hours that are counted separately.
    package static let hourCount = 48

    /// Arms in the order of the split.
    package var arms: [Arm]
    package var columns: [Column]
    /// Whether receipts name tokens. Otherwise they name apns-ids, which rows of a holdout do not
    /// have.
    package var namesTokens: Bool
    /// Number of receipts read, including receipts that are ignored.
    package var receipts: UInt64 = 0
    /// Number of receipts that are ignored because the same device has an earlier receipt.
    package var repeated: UInt64 = 0
    /// Number of receipts that belong to no accepted or held-out row of the campaign.
    package var foreign: UInt64 = 0
    /// Number of receipts that are ignored because they are earlier than the verdict of their row.
    package var early: UInt64 = 0
    /// Number of receipts whose token, apns-id or time can't be read.
    package var unreadable: UInt64 = 0
    /// Line and problem of the first unreadable receipt; nil if there is none.
    package var firstUnreadable: String?

    package init(arms: [Arm], columns: [Column], namesTokens: Bool) {
        self.arms = arms
        self.columns = columns
        self.namesTokens = namesTokens
    }

    /// Arms whose devices can have receipts. The holdout is not among them if receipts name
    /// apns-ids.
    var shownArms: [Arm] { arms.filter { namesTokens || !$0.isHoldout } }

    /// All pairs of arms. Pairs with the holdout are last.
    var comparisons: [Comparison] {
        let sent = shownArms.filter { !$0.isHoldout }
        var pairs: [(Arm, Arm)] = []
        for (index, first) in sent.enumerated() {
            for second in sent[(index + 1)...] { pairs.append((first, second)) }
        }
        for holdout in shownArms where holdout.isHoldout {
            for arm in sent { pairs.append((arm, holdout)) }
        }
        let armCount = shownArms.count
        assert(
            pairs.count == sent.count * (sent.count - 1) / 2 + (armCount - sent.count) * sent.count,
            "each pair of arms is compared once, except a pair of holdouts")
        return pairs.map { first, second in
            Comparison(
                first: first, second: second,
                difference: second.isHoldout
                    ? first.proportionOfSent.minus(second.proportionOfSent)
                    : first.proportion.minus(second.proportion))
        }
    }

    /// The most important finding, in one sentence.
    var sentence: String {
        let arms = shownArms.filter { !$0.isHoldout }
        guard arms.count + (shownArms.count - arms.count) > 1 else {
            guard let arm = arms.first else { return "No arm has devices." }
            return
                "\(Self.percent(arm.proportion.share)) of \(grouped(arm.devices)) devices opened."
        }
        let decided = comparisons.filter { !$0.difference.isInconclusive }
        guard !decided.isEmpty else {
            return "No difference between arms is large enough to be conclusive."
        }
        return decided.map { comparison in
            let difference = comparison.difference
            let (better, worse) =
                difference.difference > 0
                ? (comparison.first, comparison.second) : (comparison.second, comparison.first)
            return "\(better.name) has a higher open rate than \(worse.name), by "
                + "\(decimal(abs(difference.difference) * 100, places: 1)) percentage points"
        }.joined(separator: "; ") + "."
    }

    /// Text about ignored receipts; nil if no receipt is ignored.
    var leftOutText: String? {
        let parts: [(count: UInt64, one: String, more: String)] = [
            (repeated, "is a later receipt of a device", "are later receipts of a device"),
            (
                foreign, "belongs to no row that was accepted or held out",
                "belong to no row that was accepted or held out"
            ),
            (early, "came before the notification", "came before the notification"),
            (unreadable, "has no readable ID or time", "have no readable ID or time"),
        ]
        let texts = parts.filter { $0.count > 0 }.map {
            "\(grouped($0.count)) \($0.count == 1 ? $0.one : $0.more)"
        }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }

    /// Reasons to doubt the figures, one line each.
    package var warnings: [String] {
        var lines: [String] = []
        if let firstUnreadable {
            lines.append(
                "\(grouped(unreadable)) of \(grouped(receipts)) receipts can't be read and "
                    + "\(unreadable == 1 ? "is" : "are") ignored: the first: \(firstUnreadable)")
        }
        let matched = arms.reduce(repeated + early) { $0 + $1.opened }
        if receipts > unreadable, matched == 0 {
            lines.append(
                receipts == 1
                    ? "the only receipt does not belong to a row that was accepted or held out: does "
                        + "it belong to another campaign?"
                    : "none of the \(grouped(receipts)) receipts belongs to a row that was accepted "
                        + "or held out: do they belong to another campaign?")
        } else if early > 0, early == matched {
            lines.append(
                early == 1
                    ? "the only receipt of this campaign's devices is earlier than its notification: "
                        + "is its time in UTC, or in the zone that it names?"
                    : "all \(grouped(early)) receipts of this campaign's devices are earlier than "
                        + "their notifications: are the times in UTC, or in the zone that they name?"
            )
        }
        return lines
    }

    static func percent(_ share: Double) -> String { "\(decimal(share * 100, places: 1))%" }

    static func text(_ interval: ClosedRange<Double>) -> String {
        "\(percent(interval.lowerBound)) to \(percent(interval.upperBound))"
    }

    /// Formats a difference in percentage points, with its sign.
    static func points(_ value: Double) -> String {
        let text = decimal(abs(value) * 100, places: 1)
        return value < 0 && text != "0.0" ? "\u{2212}\(text)" : "+\(text)"
    }
}

extension ReceiptFindings {
    /// The figures as JSON, one object and a line end.
    package var json: String {
        var line = JSONLine()
        line.add("receipts", receipts)
        line.add("repeated", repeated)
        line.add("foreign", foreign)
        line.add("early", early)
        line.add("unreadable", unreadable)
        var armsLine = JSONLine()
        for arm in shownArms { armsLine.add(arm.name, json(of: arm)) }
        line.add("arms", armsLine)
        let pairs = comparisons.map { comparison in
            var pair = JSONLine()
            pair.add("first", comparison.first.name)
            pair.add("second", comparison.second.name)
            pair.add("difference", comparison.difference.difference, places: 6)
            pair.add("low", comparison.difference.interval.lowerBound, places: 6)
            pair.add("high", comparison.difference.interval.upperBound, places: 6)
            pair.add("too_small_to_tell", comparison.difference.isInconclusive)
            return pair.object
        }
        line.addRaw("differences", "[\(pairs.joined(separator: ","))]")
        return line.object + "\n"
    }

    private func json(of arm: Arm) -> JSONLine {
        assert(arm.hours.reduce(0, +) == arm.opened, "each opening has its hour")
        assert(arm.values.count == columns.count, "each column has its values")
        var line = JSONLine()
        line.add("devices", arm.devices)
        line.add("opened", arm.opened)
        line.add("sent", max(arm.sent, arm.devices))
        line.add("share", arm.proportion.share, places: 6)
        line.add("low", arm.proportion.interval.lowerBound, places: 6)
        line.add("high", arm.proportion.interval.upperBound, places: 6)
        line.addRaw("hours", "[\(arm.hours.map(String.init).joined(separator: ","))]")
        var byColumn = JSONLine()
        for (index, column) in columns.enumerated() {
            var values = JSONLine()
            for (place, name) in column.values.enumerated() {
                values.add(name, place < arm.values[index].count ? arm.values[index][place] : 0)
            }
            byColumn.add(column.name, values)
        }
        line.add("by", byColumn)
        return line
    }
}
