package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// Numbers of settled rows for each arm of a campaign, for outputs.
package struct ArmTotals: Sendable, Equatable {
    /// Settled rows of one arm.
    package struct Arm: Sendable, Equatable, Encodable {
        package var name: String
        /// Counts in the order of `RowState.settledStates`.
        fileprivate var numbers: [UInt64]

        /// Number of the arm's rows in a settled state.
        package func count(_ state: RowState) -> UInt64 {
            RowState.settledStates.firstIndex(of: state).map { numbers[$0] } ?? 0
        }

        /// Number of the arm's settled rows.
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
    }

    /// Arms in the order of the split.
    package var arms: [Arm]

    /// - Returns: nil if the campaign has no arms.
    package init?(_ split: ArmSplit?, _ counts: ArmCounts) {
        guard let split else { return nil }
        arms = split.names.enumerated().map { index, name in
            Arm(
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

    /// Key of a count in JSON: the name of a state.
    private struct StateKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
