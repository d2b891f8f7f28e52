import BroadsideSupport
import Testing

@testable import BroadsidePayloads

/// Payloads that are named after a language in another way than the rows' values.
@Suite struct PayloadChooserTests {
    private func find(_ value: String, _ names: [String], column: String = "locale") -> String? {
        let chooser = PayloadChooser(
            names.enumerated().map { (Array($1.utf8), $0) }, column: column)
        let bytes = Array(value.utf8)
        return (chooser.find(bytes.rawSpan) ?? chooser.findLanguage(of: bytes.rawSpan)).map {
            names[$0]
        }
    }

    @Test(
        arguments: [
            ("zh-CN", "zh-Hans"), ("zh-TW", "zh-Hant"), ("zh-HK", "zh-Hant"), ("zh-MO", "zh-Hant"),
            ("zh-SG", "zh-Hans"), ("zh", "zh-Hans"), ("zh_TW", "zh-Hant"),
            ("ZH-hant-tw", "zh-Hant"),
            ("zh-Hant-HK", "zh-Hant"), ("zho-TW", "zh-Hant"), ("iw", "he"), ("iw-IL", "he"),
            ("he_IL", "he"), ("in", "id"), ("in_ID", "id"), ("no", "nb"), ("no-NO", "nb"),
            ("nn-NO", "nb"), ("nor", "nb"), ("PT-br", "pt-BR"), ("pt_br", "pt-BR"), ("pt", "pt-BR"),
            ("pt-BR ", "pt-BR"), ("\tpt-BR\r", "pt-BR"), ("por", "pt-BR"), ("EN", "en"),
            ("en-us", "en"), ("en_UK", "en-GB"), ("en-gb", "en-GB"), ("de_DE.UTF-8", "de"),
            ("de_AT@euro", "de"), ("deu", "de"), ("de-CH-1996", "de"), ("es-MX", "es-419"),
            ("es-ES", "es"), ("es", "es"), ("sr-ME", "sr-Latn"), ("sh", "sr-Latn"),
            ("sr", "sr-Cyrl"), ("sr-RS", "sr-Cyrl"), ("tl", "fil"), ("ji", "yi"),
            ("zh_CN_#Hans", "zh-Hans"), ("zh_TW_#Hant", "zh-Hant"), ("zh-CN_#Hans", "zh-Hans"),
            ("zh__#Hans", "zh-Hans"), ("zh__#Hant", "zh-Hant"), ("sr_RS_#Latn", "sr-Latn"),
            ("pt-BR,pt;q=0.9", "pt-BR"), ("zh-TW,zh;q=0.9", "zh-Hant"), ("pt-BR;q=1.0", "pt-BR"),
        ])
    func `A language tag finds the payload of its language`(value: String, name: String) {
        let names = [
            "de", "en", "en-GB", "es", "es-419", "fil", "he", "id", "nb", "pt-BR", "sr-Cyrl",
            "sr-Latn", "yi", "zh-Hans", "zh-Hant", "default",
        ]
        #expect(find(value, names) == name)
        #expect(find(value, names.reversed()) == name)
        let underscored = names.map { $0.replacing("-", with: "_") }
        #expect(find(value, underscored) == name.replacing("-", with: "_"))
    }

    @Test func `Payload files may have old or long language codes`() {
        for (name, value) in [
            ("iw", "he"), ("in", "id"), ("no", "nb"), ("zh-CN", "zh-Hans"), ("zh-TW", "zh-Hant"),
            ("zh-Hans-CN", "zh"), ("pt-br", "pt-BR"), ("he-IL", "he"), ("en-US", "en"),
        ] {
            #expect(find(value, ["fr", name]) == name, "\(value)")
        }
        #expect(find("zh-HK", ["zh-Hant", "zh-HK"]) == "zh-HK")
        #expect(find("zh-MO", ["zh-Hant", "zh-HK"]) == "zh-HK")
        #expect(find("zh-HK", ["zh", "zh-Hant"]) == "zh-Hant")
        #expect(find("zh-HK", ["zh"]) == "zh")
    }

    @Test func `Another language or script finds no payload`() {
        let names = ["de", "en-US", "pt-BR", "zh-Hant", "gold", "ca-ES-valencia"]
        for value in [
            "fr", "zh", "zh-CN", "zh-Hans", "pt-PT", "en-GB", "", " ", "-", "d", "dee", "Gold", "é",
            "de\u{301}", "ca-ES", "ca", "1", "12-34", "defaults",
        ] {
            #expect(find(value, names) == nil, "\(value)")
        }
        #expect(find("de", []) == nil)
    }

    @Test func `A country code finds no payload`() {
        // India and Norway.
        for column in ["country", "countryCode", "Region", "market"] {
            #expect(find("in", ["id", "us"], column: column) == nil)
        }
        #expect(find("IN", ["id", "us"], column: "code") == nil)
        #expect(find("in", ["id", "us"], column: "code") == "id")
        #expect(find("IN", ["id", "us"], column: "language") == "id")
        #expect(find("NO", ["nb"], column: "lang") == "nb")
    }
}
