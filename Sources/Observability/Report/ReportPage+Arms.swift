import BroadsideRows
import BroadsideSupport

/// Arms of the campaign: rows by outcome.
extension ReportPage {
    /// Table of the arms' rows; empty if there are no arms.
    var arms: String {
        guard let arms = data.summary.arms?.arms else { return "" }
        let states = RowState.settledStates.filter { state in
            state == .accepted || arms.contains { $0.count(state) > 0 }
        }
        let rows = arms.map { arm in
            [arm.name, grouped(arm.settled)] + states.map { grouped(arm.count($0)) }
        }
        return "<h2>Arms</h2>\n<div class=\"box\">"
            + tableHTML(["Arm", "Settled rows"] + states.map(\.name), rows, isStacked: true)
            + "</div>\n"
    }
}
