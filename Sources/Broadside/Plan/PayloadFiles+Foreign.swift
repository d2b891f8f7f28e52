import BroadsidePayloads
import BroadsideSupport

extension PayloadFiles {
    /// Warnings about placeholders in the syntax of other tools, if they name columns of the list.
    /// Such a placeholder would be sent literally, instead of the row's value.
    ///
    /// - Parameter columns: Columns of the list.
    func foreignPlaceholderWarnings(_ columns: [String]) -> [String] {
        guard !columns.isEmpty else { return [] }
        var found: [(location: String, placeholder: ForeignPlaceholder)] = []
        for (name, template) in zip(names, set.templates) where !name.isEmpty {
            if let placeholder = template.foreignPlaceholder(columns: columns) {
                found.append((name, placeholder))
            }
        }
        let collapse = collapseID.map { Array($0.utf8) } ?? set.collapse?.constant
        if let collapse,
            let placeholder = ForeignPlaceholder.first(in: collapse, columns: columns)
        {
            found.append(("--collapse-id", placeholder))
        }
        return found.map { location, placeholder in
            "\(location): '\(printable(placeholder.text))' is sent as it is, but the list has a column "
                + "'\(printable(placeholder.column))': write {{\(printable(placeholder.column))}} for "
                + "each row's value"
        }
    }
}
