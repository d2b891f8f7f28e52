import Testing

@testable import BroadsidePayloads
@testable import BroadsideRows

/// Values that a program damaged before it wrote the list.
@Suite struct DamagedTextsTests {
    private typealias Occurrence = DamagedTexts.Occurrence

    /// The rows with a sign of damage in the columns `x` and `y` of a CSV list.
    private func found(
        _ sign: DamagedTexts.Sign, _ payload: String?, csv: String
    ) throws -> [DamagedTexts.Occurrence?] {
        let set = try payload.map { payload in
            let bytes = Array(payload.utf8)
            return PayloadSet(
                templates: [try PayloadTemplate(bytes.span.bytes)], choice: nil, collapse: nil,
                limit: 4096)
        }
        let layout = try RowLayout(format: .csv, names: ["x", "y"], header: Array("x,y".utf8))
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: .csv, pool: pool)
        var reader = RowReader(layout: layout)
        var damage = DamagedTexts(layout, payloads: set)
        cut(&splitter, pool: pool, pieces: [Array(csv.utf8)]) { chunk in
            reader.open(chunk)
            while let row = reader.next() { damage.take(row, of: reader) }
            _ = reader.close()
        }
        return [0, 1].map { damage.occurrence(of: sign, in: $0) }
    }

    @Test func `Damaged texts are found in all rows, with the first line of each column`() throws {
        let csv = "x,y\nAnn,a\nJ\u{fffd}rg,b\nBo,[object Object]\n\u{fffd},x[object Object]\n"
        #expect(
            try found(.lostCharacter, nil, csv: csv) == [
                Occurrence(line: 3, text: "\u{fffd}", rows: 2), nil,
            ])
        #expect(
            try found(.object, nil, csv: csv) == [
                nil, Occurrence(line: 4, text: "[object Object]", rows: 2),
            ])
        #expect(try found(.entity, nil, csv: csv) == [nil, nil])
    }

    @Test func `Similar characters and texts are not damaged`() throws {
        let csv = "x,y\n！,\u{fffc}\n[object],[object Objec\n\u{f8ff},R&D; A&B\n&,&\n"
        let payload = #"{"aps":{"alert":"{{x}} {{y}}"}}"#
        for sign in DamagedTexts.Sign.allCases {
            #expect(try found(sign, payload, csv: csv) == [nil, nil])
        }
    }

    // HTML may be intended in a column that no text of the alert has.
    @Test(arguments: [
        (#"{"aps":{"alert":"{{x}}"},"html":"{{y}}"}"#, [true, false]),
        (#"{"aps":{"alert":{"title":"Hi {{x}}!","body":"{{y|x}}"}}}"#, [true, true]),
        (
            #"{"aps":{"alert":{"title":"a","body":"{{x:fit}}"},"badge":"{{y:int}}"}}"#,
            [true, false]
        ),
        (#"{"html":"{{x}}","aps":{"alert":{"loc-args":["{{y}}"],"title":"a"}}}"#, [false, false]),
        (#"{"aps":{"alert":"x"}}"#, [false, false]),
    ])
    func `An HTML entity counts in the columns of the alert's texts`(
        payload: String, isShown: [Bool]
    ) throws {
        let rows = try found(.entity, payload, csv: "x,y\nAnn,Bo\nO&#39;Hara,A &amp; B\n")
        #expect(rows.map { $0 != nil } == isShown)
        if isShown[0] { #expect(rows[0] == Occurrence(line: 3, text: "&#39;", rows: 1)) }
    }
}
