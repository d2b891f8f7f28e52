import Testing

@testable import BroadsidePayloads
@testable import BroadsideRows

/// Rows whose alert has no text because the values for the text are empty or blank.
@Suite struct BlankAlertsTests {
    /// For each row of a CSV list, whether its alert has no text.
    private func found(_ payload: String, csv: String) throws -> [Bool] {
        let bytes = Array(payload.utf8)
        let set = PayloadSet(
            templates: [try PayloadTemplate(bytes.span.bytes)], choice: nil, collapse: nil,
            limit: 4096)
        let layout = try RowLayout(format: .csv, names: ["x", "y"], header: Array("x,y".utf8))
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: .csv, pool: pool)
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        let alerts = BlankAlerts(set)
        var result: [Bool] = []
        cut(&splitter, pool: pool, pieces: [Array(csv.utf8)]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                guard case .made(let shape) = renderer.render(reader) else {
                    Issue.record("each row can be sent")
                    continue
                }
                result.append(alerts.includes(shape, of: renderer))
            }
            _ = reader.close()
        }
        return result
    }

    @Test(arguments: [
        (#"{"aps":{"alert":"{{x}}"}}"#, [false, true, true, true]),
        (#"{"aps":{"alert":"{{x}} {{y}}"}}"#, [false, true, false, false]),
        (#"{"aps":{"alert":{"title":"{{x}}","body":"{{y:fit}}"}}}"#, [false, true, false, false]),
        (
            #"{"n":"{{y}}","aps":{"alert":{"title":"","subtitle":"{{x}}"},"sound":"s"}}"#,
            [false, true, true, true]
        ),
        (#"{"aps":{"alert":{"title":"{{x}}","loc-key":"K"}}}"#, [false, false, false, false]),
        (#"{"aps":{"alert":"Hi {{x}}"}}"#, [false, false, false, false]),
        (#"{"aps":{"alert":"{{{{{{x}}"}}"#, [false, false, false, false]),
        (#"{"aps":{"alert":"{{x|y}}"}}"#, [false, false, false, false]),
        (#"{"aps":{"alert":""},"n":"{{x}}"}"#, [false, false, false, false]),
        (#"{"aps":{"sound":"s"},"n":"{{x}}"}"#, [false, false, false, false]),
    ])
    func `A row has an alert without text if all values for the text are blank`(
        payload: String, expected: [Bool]
    ) throws {
        #expect(try found(payload, csv: "x,y\na,b\n,\n  ,b\n,b\n") == expected)
    }
}
