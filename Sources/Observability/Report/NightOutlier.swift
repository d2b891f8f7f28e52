import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Figure of a night that differs strongly from the campaign's earlier nights.
struct NightOutlier {
    enum Figure: String {
        case list
        case dead
        case accepted
        case speed
    }

    var figure: Figure
    /// Description, such as `list fell to 6,000 rows from 22,800`.
    var text: String
}

extension NightOutlier {
    /// Number of earlier nights with which a night is compared.
    private static let window = 7
    /// Minimum number of earlier nights for a comparison of shares and speeds. The list's size is
    /// compared even with a single earlier night.
    private static let fewest = 3

    /// Outliers per night, in the order of the nights.
    ///
    /// - Parameter nights: Nights, newest first.
    static func find(in nights: [Night]) -> [[NightOutlier]] {
        assert(
            zip(nights, nights.dropFirst()).allSatisfy {
                ($0.startedAtMilliseconds ?? .max) >= ($1.startedAtMilliseconds ?? .max)
            }, "the newest night is first")
        var found = [[NightOutlier]](repeating: [], count: nights.count)
        var earlier: [String: [Night.Figures]] = [:]
        for index in nights.indices.reversed() {
            let night = nights[index]
            // A test with `--limit` does not count as a night.
            guard night.startedAtMilliseconds != nil, let figures = night.figures,
                figures.outcome != .running, figures.isLimited != true
            else { continue }
            let group = night.group
            found[index] = compare(figures, with: earlier[group, default: []])
            earlier[group, default: []].append(figures)
            if earlier[group, default: []].count > window { earlier[group]?.removeFirst() }
            assert(earlier[group, default: []].count <= window, "the last nights are compared")
        }
        return found
    }

    private static func compare(
        _ night: Night.Figures, with earlier: [Night.Figures]
    ) -> [NightOutlier] {
        var found: [NightOutlier] = []
        let lists = earlier.compactMap(\.rows).map { Double($0) }
        if let rows = night.rows, let usual = NightsPage.median(lists), usual > 0 {
            let text = "\(counted(rows, "row")) from \(grouped(wholeNumber(usual)))"
            if Double(rows) < 0.7 * usual {
                found.append(NightOutlier(figure: .list, text: "the list fell to \(text)"))
            } else if Double(rows) > 1.5 * usual {
                found.append(NightOutlier(figure: .list, text: "the list grew to \(text)"))
            }
        }
        if night.counts.settled > 0, night.counts[.skipped] == night.counts.settled {
            found.append(
                NightOutlier(
                    figure: .accepted, text: "no device got it, because all rows were skipped"))
        } else if let skipped = night.counts.skippedShare, skipped > RowCounts.usualSkippedShare,
            NightsPage.median(earlier.compactMap(\.counts.skippedShare)) ?? 0
                <= RowCounts.usualSkippedShare
        {
            found.append(
                NightOutlier(
                    figure: .accepted,
                    text: "\(NightsPage.share(skipped)) of the rows were skipped"))
        }
        func usual(_ value: (Night.Figures) -> Double?) -> Double? {
            let values = earlier.compactMap(value)
            return values.count >= fewest ? NightsPage.median(values) : nil
        }
        if let dead = night.deadShare, let usual = usual(\.deadShare), dead > 2 * usual,
            dead > usual + 0.005
        {
            found.append(
                NightOutlier(
                    figure: .dead,
                    text:
                        "\(NightsPage.share(dead)) dead tokens, usually \(NightsPage.share(usual))")
            )
        }
        if let accepted = night.acceptedShare, let usual = usual(\.acceptedShare),
            accepted < usual - 0.05
        {
            found.append(
                NightOutlier(
                    figure: .accepted,
                    text: "only \(NightsPage.share(accepted)) accepted, usually "
                        + NightsPage.share(usual)))
        }
        if let speed = night.speed, let usual = usual(\.speed), speed < usual / 2 {
            found.append(
                NightOutlier(
                    figure: .speed,
                    text: "\(rateText(speed)) per second, usually \(rateText(usual))"))
        }
        return found
    }
}

extension Night.Figures {
    /// Accepted rows as a share of the settled rows that were not skipped, 0 to 1; nil if there are
    /// no such rows.
    var acceptedShare: Double? {
        let sent = counts.settled - min(counts.settled, counts[.skipped])
        return sent > 0 ? Double(counts[.accepted]) / Double(sent) : nil
    }
}

extension Night {
    /// Key of a campaign: its name without numbers. Nights with the same key are compared: `Evening
    /// 2026-11-20` and `Evening 2026-11-21` belong together.
    var group: String {
        let isNumber =
            title.utf8.count == 16
            && title.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard !isNumber else { return "without a name" }
        var scalars = String.UnicodeScalarView()
        for scalar in title.unicodeScalars {
            guard !("0"..."9").contains(scalar) else {
                if scalars.last != "#" { scalars.append("#") }
                continue
            }
            scalars.append(scalar)
        }
        let name = String(scalars).replacing("#-#-#", with: "#").replacing("#:#", with: "#")
        return name.isEmpty ? "without a name" : name
    }
}
