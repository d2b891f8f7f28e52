package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// The counts of the settled rows for each arm of a campaign, for outputs.
package struct ArmTotals: Sendable, Equatable {
    /// Arms in the order of the split.
    package var arms: [NamedTotals]

    /// - Returns: nil if the campaign has no arms.
    package init?(_ split: ArmSplit?, _ counts: ArmCounts) {
        guard let split else { return nil }
        arms = split.names.enumerated().map { index, name in
            NamedTotals(
                name: name,
                numbers: RowState.settledStates.map { counts[UInt8(index + 1), $0] })
        }
        assert(arms.count <= ArmSplit.armLimit, "a campaign has so many arms at most")
    }

    /// JSON object with an object of counts for each arm.
    package var json: JSONLine {
        var line = JSONLine()
        for arm in arms {
            var own = JSONLine()
            for state in RowState.settledStates { own.add(state.name, arm.count(state)) }
            line.add(arm.name, own)
        }
        return line
    }
}

/// Settled rows of each topic of a campaign whose rows name their topics, for outputs.
package struct TopicTotals: Sendable, Equatable {
    /// Topics, sorted by their bytes.
    package var topics: [NamedTotals]

    package init(_ counts: TopicCounts) {
        topics = counts.topics.map { topic in
            NamedTotals(
                name: String(decoding: topic, as: UTF8.self),
                numbers: RowState.settledStates.map { counts[topic, $0] })
        }
    }
}

/// Settled rows of one arm or topic.
package struct NamedTotals: Sendable, Equatable, Encodable {
    package var name: String
    /// The counts in the order of `RowState.settledStates`.
    fileprivate var numbers: [UInt64]

    /// Returns the number of rows in a settled state.
    package func count(_ state: RowState) -> UInt64 {
        RowState.settledStates.firstIndex(of: state).map { numbers[$0] } ?? 0
    }

    /// Number of the settled rows.
    package var settled: UInt64 { numbers.reduce(0, +) }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: StateKey.self)
        for state in RowState.settledStates {
            try container.encode(count(state), forKey: StateKey(stringValue: state.name))
        }
    }

    /// Text with the counts above 0.
    package var words: String {
        let parts = RowState.settledStates.filter { count($0) > 0 }
            .map { "\(grouped(count($0))) \($0.name)" }
        return parts.isEmpty ? "no rows" : parts.joined(separator: ", ")
    }

    /// Key of a count in JSON: the name of a state.
    private struct StateKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
