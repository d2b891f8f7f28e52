import BroadsideAPNs
import Testing

@testable import BroadsidePayloads
@testable import BroadsideRows

/// `--payload-by`: which payload a row gets, and what is counted of those that get none of their own.
@Suite struct PayloadChoiceTests {
    /// The outcome of each row of a column.
    private struct Outcome {
        /// The name of the row's payload, or why it has none.
        var payloads: [String] = []
        var counts = FallbackCounts()
    }

    /// The payload of the value `de` is `{"p":"de"}`; that of others, if they have one, `{"p":""}`.
    private func choose(
        _ values: [String], names: [String], hasFallback: Bool = true, column: String = "lang",
        payload: (String) -> String = { "{\"p\":\"\($0)\"}" }
    ) throws -> Outcome {
        let all = names + (hasFallback ? [""] : [])
        let templates = try all.map { try PayloadTemplate(Array(payload($0).utf8).span.bytes) }
        let places = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0) })
        let set = PayloadSet(
            templates: templates,
            choice: .init(
                column: column, names: places, fallback: hasFallback ? names.count : nil),
            collapse: nil, limit: 4096)
        #expect(set.isPersonal && set.choice?.hasFallback == hasFallback)
        let layout = try RowLayout(format: .csv, names: [column], header: Array("x,\(column)".utf8))
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .csv, pool: pool)
        var outcome = Outcome()
        let rows = values.map { "1,\($0)\n" }.joined()
        cut(&cutter, pool: pool, pieces: [Array("x,\(column)\n\(rows)2\n".utf8)]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                switch renderer.render(reader) {
                case .made(let shape): outcome.payloads.append(all[Int(shape.template)])
                case .invalid(let reason): outcome.payloads.append(reason.text)
                }
            }
            _ = reader.close()
        }
        #expect(outcome.payloads.popLast() == "MissingColumn")
        outcome.counts = renderer.fallbackCounts
        return outcome
    }

    @Test func `A row gets the payload of its value, or of its shorter forms`() throws {
        let names = ["de", "de-AT", "en", "en_GB", "fr", "pt-BR", "pt_BR", "x", "zh_Hant"]
        let expected = [
            ("de", "de"), ("de-AT", "de-AT"), ("de_AT", "de-AT"), ("de-CH", "de"), ("de_CH", "de"),
            ("de-AT-1996", "de-AT"), ("de-CH-1996", "de"), ("en_GB", "en_GB"), ("en-GB", "en_GB"),
            ("en-US", "en"), ("fr", "fr"), ("pt-BR", "pt-BR"), ("pt_BR", "pt_BR"),
            ("zh-Hant", "zh_Hant"), ("zh_Hant_TW", "zh_Hant"), ("zh-Hant-TW", "zh_Hant"),
            // Of a language it is the same whatever its case, and whether it names what is usual.
            ("DE", "de"), ("pt", "pt-BR"), ("de ", "de"), ("PT-br", "pt-BR"), ("zh-TW", "zh_Hant"),
            // What merely begins like a name is another value.
            ("d", ""), ("dee", ""), ("zh", ""), ("zh-Hans", ""), ("X", "x"),
            ("-de", ""), ("a", ""), ("zz", ""), ("dé", ""), ("\"\"", ""), ("-", ""), ("de-", "de"),
            ("fr_", "fr"), ("x-y", "x"), ("xy", ""), ("x", "x"), ("fr-_-", "fr"),
        ]
        let found = try choose(expected.map(\.0), names: names)
        for (place, (value, name)) in expected.enumerated() {
            #expect(found.payloads[place] == name, "\(value)")
        }
        #expect(found.counts.rows == UInt64(expected.count { $0.1.isEmpty }))
    }

    @Test func `A value finds its payload regardless of invisible characters around it`() throws {
        let values = ["de\u{a0}", "\u{feff}de", "DE \u{200b} ", "é\u{3000}", "\u{2003}"]
        let outcome = try choose(values, names: ["de", "é"])
        #expect(outcome.payloads == ["de", "de", "de", "é", ""])
    }

    @Test func `A value finds its payload regardless of case and of blanks around it`() throws {
        let names = [
            "gold", "Silver_Plus", "TRUE", "\u{d6}sterreich", "no", "nb", "a", "A", "\u{e9}",
        ]
        let expected = [
            ("Gold", "gold"), ("GOLD", "gold"), ("  gold", "gold"), ("gold  ", "gold"),
            (" Gold ", "gold"), ("silver-plus", "Silver_Plus"), ("SILVER_PLUS", "Silver_Plus"),
            ("true", "TRUE"), ("gold-1", "gold"), ("GOLD_1", "gold"), ("a", "a"), ("A", "A"),
            ("\u{f6}sterreich", "\u{d6}sterreich"), ("O\u{308}STERREICH", "\u{d6}sterreich"),
            ("o\u{308}sterreich ", "\u{d6}sterreich"), ("\u{c9}", "\u{e9}"),
            // A file of this name comes before one of the same language.
            ("NO", "no"), (" no", "no"), ("nb", "nb"), ("NB", "nb"), ("nor", "nb"),
            ("golden", ""), ("gol", ""), ("s", ""), (" ", ""), ("[gold", ""), ("`", ""),
        ]
        let found = try choose(expected.map(\.0), names: names)
        for (place, (value, name)) in expected.enumerated() {
            #expect(found.payloads[place] == name, "\(value)")
        }
        // The codes of countries are no languages, but their case does not matter.
        let countries = try choose(["de", "In", "id"], names: ["DE", "IN"], column: "country")
        #expect(countries.payloads == ["DE", "IN", ""])
    }

    @Test func `A payload for one region is not sent to another region`() throws {
        let expected = [
            ("de-AT", ""), ("de", "de-DE"), ("de-DE", "de-DE"), ("de_DE", "de-DE"),
            ("de-DE-1996", "de-DE"), ("zh-Hant-HK", ""), ("zh-Hant", "zh-TW"), ("zh-TW", "zh-TW"),
            ("fr-CA", "fr"), ("fr-FR", "fr"), ("pt-AO", ""), ("pt-PT", "pt-PT"), ("pt", ""),
            ("en-AU", ""), ("en", "en-US"),
        ]
        let names = ["de-DE", "zh-TW", "fr", "pt-PT", "en-US", "en-GB"]
        #expect(try choose(expected.map(\.0), names: names).payloads == expected.map(\.1))
    }

    @Test func `Names that differ only in case are found by values in a third case`() throws {
        for names in [["ab", "AB"], ["AB", "ab"]] {
            #expect(try choose(["aB", "ab", "AB"], names: names).payloads == ["AB", "ab", "AB"])
        }
    }

    @Test func `Each of many names is found, and no text between them`() throws {
        for count in [1, 2, 3, 7, 64, 201] {
            let names = (0..<count).map { "n\(3 * $0 + 1)" }
            let found = try choose(names, names: names)
            #expect(found.payloads == names)
            #expect(found.counts == FallbackCounts())
            let others = (0..<count).flatMap { ["n\(3 * $0)", "n\(3 * $0 + 2)"] }
            let none = try choose(others, names: names, hasFallback: false)
            #expect(none.payloads == others.map { _ in "NoPayload" })
        }
    }

    @Test func `Rows without a payload of their own are counted by value`() throws {
        let values = ["it", "en", "es", "it", "de", "it", "es-MX"]
        for hasFallback in [true, false] {
            let found = try choose(values, names: ["en", "de"], hasFallback: hasFallback)
            #expect(found.counts.byValue == ["it": 3, "es": 1, "es-MX": 1])
            #expect(found.counts.others == 0 && found.counts.rows == 5)
        }
    }

    @Test func `A row that is not sent for another reason is not counted as without payload`()
        throws
    {
        // No value of the column is a boolean.
        let found = try choose(["it", "en"], names: ["en"]) {
            $0.isEmpty ? "{\"n\":\"{{lang:bool}}\"}" : "{}"
        }
        #expect(found.payloads == ["BadValue", "en"])
        #expect(found.counts == FallbackCounts())
    }

    @Test func `Distinct values are limited, and the others are counted together`() throws {
        let limit = FallbackTally.valueLimit
        let values = (0..<limit + 3).map { "v\($0)" }
        let found = try choose(values + values, names: ["en"], hasFallback: false)
        #expect(found.counts.byValue.count == limit)
        #expect(found.counts.byValue["v0"] == 2 && found.counts.byValue["v\(limit - 1)"] == 2)
        #expect(found.counts.byValue["v\(limit)"] == nil)
        #expect(found.counts.others == 6)
        #expect(found.counts.rows == UInt64(values.count * 2))
        var sum = found.counts
        sum.add(try choose(["v0", "w"], names: ["en"]).counts)
        #expect(sum.byValue["v0"] == 3 && sum.byValue["w"] == 1 && sum.others == 6)
        sum.add(found.counts)
        #expect(sum.others == 12 && sum.byValue["v1"] == 4)
    }

    @Test func `A device token is counted by its first digits`() throws {
        let token = String(repeating: "0a1b9f", count: 10) + "cdef"
        let counts = try choose([token, token.uppercased() + "x"], names: ["en"]).counts
        #expect(counts.byValue == ["0a1b9f0a…": 1, "0A1B9F0A…": 1])
    }

    @Test func `A name in one Unicode form serves values in the other form`() throws {
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        for (name, value) in [
            (composed, decomposed), (decomposed, composed), (decomposed, decomposed),
            ("\(decomposed)_x", "\(composed)-x"), ("\(composed)-x", "\(decomposed)_x"),
            (decomposed, "\(composed)-1 "),
        ] {
            let found = try choose([value, "cafe"], names: [name, "en"])
            #expect(found.payloads[0].utf8.elementsEqual(name.utf8), "\(name) \(value)")
            #expect(found.payloads[1] == "")
        }
        // Another letter is another value.
        #expect(try choose(["caf\u{e8}"], names: [composed]).payloads == [""])
    }

    @Test func `A long value is shown by its beginning without splitting a character`() throws {
        let long = String(repeating: "x", count: 40)
        for (value, shown) in [
            (String(repeating: "x", count: 32), String(repeating: "x", count: 32)),
            (String(repeating: "x", count: 33), String(repeating: "x", count: 32) + "..."),
            (String(repeating: "é", count: 16), String(repeating: "é", count: 16)),
            (
                "a" + String(repeating: "é", count: 16),
                "a" + String(repeating: "é", count: 15) + "..."
            ),
            (
                String(repeating: "x", count: 30) + "\u{1f389}",
                String(repeating: "x", count: 30) + "..."
            ),
        ] {
            let counts = try choose([value], names: ["en"]).counts
            #expect(counts.byValue == [shown: 1])
        }
        // Two that begin alike are two, under one name.
        let counts = try choose([long + "a", long + "b"], names: ["en"]).counts
        #expect(counts.byValue == [String(repeating: "x", count: 32) + "...": 2])
    }
}
