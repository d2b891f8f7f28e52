package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// Rules that exclude rows by their own columns, each with an option and a `SkipReason` of its own.
///
/// Only this type knows which rules exist. All other code gets the columns, the plan's lines and
/// the reasons of all rules from it.
public struct RowRules: Sendable, Equatable {
    /// The filter of `--where`; nil if it was not given.
    public var filter: RowFilter?

    /// Creates rules that exclude no row.
    public init() {}

    /// Whether the rules exclude no row.
    package var isEmpty: Bool { self == RowRules() }

    /// Reasons for which the rules may exclude rows.
    package var reasons: [SkipReason] { filter == nil ? [] : [.filtered] }

    /// Columns that the rules read, each with the name of its option. A column occurs once for each
    /// option.
    package var columns: [(name: String, option: String)] {
        filter?.columns.map { ($0, "where") } ?? []
    }

    /// Name of an option that compares with a device token; nil if there is none.
    package var optionWithToken: String? { filter?.hasToken == true ? "where" : nil }

    /// Descriptions of the rules for the plan, each with the name of its option.
    package var descriptions: [(option: String, text: String)] {
        filter.map { [("where", $0.canonicalTexts.joined(separator: "; "))] } ?? []
    }

    /// Records the rules in the identity of a campaign.
    package func record(in identity: inout CampaignIdentity) {
        identity.filter = filter?.canonicalTexts
    }
}

/// A pass of the rules over the rows of one list.
package struct RowRulesPass {
    private var filter: FilterPass?

    /// - Parameter layout: A layout with every column that the rules read.
    package init(_ rules: RowRules, layout: RowLayout) {
        filter = rules.filter.map { FilterPass($0, layout: layout) }
    }

    /// Returns the reason for which the rules exclude the latest row; nil if they don't. Rows are
    /// passed in the order of the list.
    package mutating func reason(
        for row: RowReader.Row, _ reader: borrowing RowReader
    ) -> SkipReason? {
        filter?.leavesOut(row, reader) == true ? .filtered : nil
    }

    /// Warns about values that the rules could not compare, after all rows of a list were read.
    ///
    /// - Parameters:
    ///   - mayRefuse: Whether the list is the whole table of a campaign that has not begun.
    ///   - isBegun: Whether the campaign has begun.
    /// - Throws: If `mayRefuse` is true, an error if no row has a value in a column that a rule
    ///   reads, or if no value of a column can meet the column's condition. If `isBegun` is false,
    ///   also an error if the filter keeps rows because their values are other spellings
    ///   of a boolean that it excludes.
    package func finish(
        _ list: TokenList, mayRefuse: Bool, isBegun: Bool
    ) throws(BroadsideError) {
        try filter?.finish(list, mayRefuse: mayRefuse, isBegun: isBegun)
    }
}
