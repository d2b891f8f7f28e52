import BroadsideSupport

/// Escapes text for HTML elements and quoted attributes. Like a browser, it works on Unicode
/// scalars: a Swift `Character` that consists of `<` and a combining mark is not equal to `<`.
func escapedHTML(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in printable(text, limit: 4000).unicodeScalars {
        switch scalar {
        case "&": result += "&amp;".unicodeScalars
        case "<": result += "&lt;".unicodeScalars
        case ">": result += "&gt;".unicodeScalars
        case "\"": result += "&quot;".unicodeScalars
        case "'": result += "&#39;".unicodeScalars
        default: result.append(scalar)
        }
    }
    return String(result)
}

/// Start of a self-contained page without scripts: everything before the content.
///
/// - Parameters:
///   - title: Plain text.
///   - css: Style sheet.
func pageHead(title: String, css: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta http-equiv="Content-Security-Policy" \
    content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" href="data:,">
    <title>\(escapedHTML(title))</title>
    <style>\(css)</style>
    </head>
    <body>
    <main>

    """
}

/// End of a page that `pageHead(title:css:)` started.
let pageEnd = """
    </main>
    </body>
    </html>

    """

/// Prevents line breaks in names of options. The text must come from `escapedHTML`.
func optionsUnbroken(_ html: String) -> String {
    html.split(separator: " ", omittingEmptySubsequences: false).map {
        $0.hasPrefix("--") ? "<span class=\"o\">\($0)</span>" : String($0)
    }.joined(separator: " ")
}

/// HTML table with one heading per column. Columns other than `textColumns` are numeric.
///
/// - Parameter isStacked: Whether each row becomes a list of headings and cells on a narrow screen.
func tableHTML(
    _ headings: [String], _ rows: [[String]], textColumns: Set<Int> = [0], isStacked: Bool = false
) -> String {
    assert(rows.allSatisfy { $0.count == headings.count }, "a row has a cell for each heading")
    func label(_ name: String, _ index: Int) -> String {
        guard isStacked, name == "td" else { return "" }
        return " data-label=\"\(escapedHTML(headings[index]))\""
    }
    func cell(_ name: String, _ index: Int, _ text: String) -> String {
        let isText = textColumns.contains(index)
        let isWide = isText && index > 0 && index == headings.count - 1
        let kind = isWide ? " class=\"w\"" : isText ? "" : " class=\"n\""
        return "<\(name)\(kind)\(label(name, index))>\(escapedHTML(text))</\(name)>"
    }
    var html =
        "<div class=\"\(isStacked ? "scroll stack" : "scroll")\" tabindex=\"0\"><table><thead><tr>"
    for (index, heading) in headings.enumerated() { html += cell("th", index, heading) }
    html += "</tr></thead><tbody>\n"
    for row in rows {
        html += "<tr>"
        for (index, text) in row.enumerated() { html += cell("td", index, text) }
        html += "</tr>\n"
    }
    return html + "</tbody></table></div>\n"
}
