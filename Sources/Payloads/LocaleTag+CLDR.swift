/// Data of Unicode's Common Locale Data Repository about tags: aliases of languages
/// (`supplementalMetadata.xml`), and the script and region that a tag omits (`likelySubtags.xml`).
extension LocaleTag {
    /// The tag with current codes in place of deprecated ones: `iw` becomes `he`.
    var canonical: LocaleTag {
        var tag = self
        for alias in Self.aliases where alias.old == language {
            tag.language = alias.new.language
            if tag.script == 0 { tag.script = alias.new.script }
            break
        }
        if tag.region == Self.oldBritain { tag.region = Self.britain }
        return tag
    }

    /// The tag with the likely script and region in place of omitted ones: `zh-TW` becomes
    /// `zh-Hant-TW`.
    var maximized: LocaleTag {
        guard let likely = Self.likely.first(where: { $0.language == language }) else {
            return self
        }
        var tag = self
        if tag.script == 0 {
            tag.script =
                Self.exceptions.first {
                    $0.language == language && $0.region == region && region != 0
                }?
                .script ?? likely.script
        }
        guard tag.region == 0 else { return tag }
        tag.region =
            tag.script == likely.script
            ? likely.region
            : Self.otherScripts.first { $0.language == language && $0.script == tag.script }?.region
                ?? 0
        return tag
    }

    /// Fallback tag (`parentLocales`); nil if only tags with fewer subtags are fallbacks.
    var parent: LocaleTag? {
        if language == Self.spanish.language, region != 0, Self.latinAmerica.contains(region) {
            return Self.spanish
        }
        let full = maximized
        if full == Self.macao { return Self.hongKong }
        if language == Self.nynorsk.language { return Self.bokmal }
        return nil
    }

    private static let aliases: [(old: Subtag, new: LocaleTag)] = [
        ("iw", "he"), ("in", "id"), ("ji", "yi"), ("jw", "jv"), ("mo", "ro"), ("tl", "fil"),
        ("no", "nb"), ("sh", "sr-Latn"), ("cmn", "zh"), ("ara", "ar"), ("bul", "bg"), ("cat", "ca"),
        ("ces", "cs"), ("chi", "zh"), ("cze", "cs"), ("dan", "da"), ("deu", "de"), ("dut", "nl"),
        ("ell", "el"), ("eng", "en"), ("est", "et"), ("fas", "fa"), ("fin", "fi"), ("fra", "fr"),
        ("fre", "fr"), ("ger", "de"), ("gre", "el"), ("heb", "he"), ("hin", "hi"), ("hrv", "hr"),
        ("hun", "hu"), ("ind", "id"), ("ita", "it"), ("jpn", "ja"), ("kor", "ko"), ("lav", "lv"),
        ("lit", "lt"), ("may", "ms"), ("msa", "ms"), ("nld", "nl"), ("nno", "nn"), ("nob", "nb"),
        ("nor", "nb"), ("per", "fa"), ("pol", "pl"), ("por", "pt"), ("ron", "ro"), ("rum", "ro"),
        ("rus", "ru"), ("slk", "sk"), ("slo", "sk"), ("slv", "sl"), ("spa", "es"), ("srp", "sr"),
        ("swe", "sv"), ("tha", "th"), ("tur", "tr"), ("ukr", "uk"), ("vie", "vi"), ("zho", "zh"),
    ].map { (LocaleTag($0.0).language, LocaleTag($0.1)) }

    private static let oldBritain = LocaleTag("en-Latn-UK").region
    private static let britain = LocaleTag("en-Latn-GB").region

    /// Likely script and region of each language.
    private static let likely: [LocaleTag] = """
        af-Latn-ZA am-Ethi-ET ar-Arab-EG as-Beng-IN az-Latn-AZ be-Cyrl-BY bg-Cyrl-BG bn-Beng-BD
        bs-Latn-BA ca-Latn-ES cs-Latn-CZ cy-Latn-GB da-Latn-DK de-Latn-DE el-Grek-GR en-Latn-US
        es-Latn-ES et-Latn-EE eu-Latn-ES fa-Arab-IR fi-Latn-FI fil-Latn-PH fr-Latn-FR ga-Latn-IE
        gl-Latn-ES gu-Gujr-IN he-Hebr-IL hi-Deva-IN hr-Latn-HR hu-Latn-HU hy-Armn-AM id-Latn-ID
        is-Latn-IS it-Latn-IT ja-Jpan-JP jv-Latn-ID ka-Geor-GE kk-Cyrl-KZ km-Khmr-KH kn-Knda-IN
        ko-Kore-KR ku-Latn-TR ky-Cyrl-KG lb-Latn-LU lo-Laoo-LA lt-Latn-LT lv-Latn-LV mk-Cyrl-MK
        ml-Mlym-IN mn-Cyrl-MN mr-Deva-IN ms-Latn-MY mt-Latn-MT my-Mymr-MM nb-Latn-NO ne-Deva-NP
        nl-Latn-NL nn-Latn-NO or-Orya-IN pa-Guru-IN pl-Latn-PL ps-Arab-AF pt-Latn-BR ro-Latn-RO
        ru-Cyrl-RU si-Sinh-LK sk-Latn-SK sl-Latn-SI so-Latn-SO sq-Latn-AL sr-Cyrl-RS sv-Latn-SE
        sw-Latn-TZ ta-Taml-IN te-Telu-IN tg-Cyrl-TJ th-Thai-TH tk-Latn-TM tr-Latn-TR uk-Cyrl-UA
        ur-Arab-PK uz-Latn-UZ vi-Latn-VN yi-Hebr-UA yue-Hant-HK zh-Hans-CN zu-Latn-ZA
        """.split { $0 == " " || $0 == "\n" }.map { LocaleTag(String($0)) }

    /// Regions in which a language is written in another script than its most likely one.
    private static let exceptions: [LocaleTag] = """
        az-Arab-IQ az-Arab-IR az-Cyrl-RU kk-Arab-AF kk-Arab-CN kk-Arab-IR kk-Arab-MN ku-Arab-IQ
        ku-Arab-IR ky-Arab-CN ky-Latn-TR mn-Mong-CN ms-Arab-CC pa-Arab-PK sr-Latn-ME sr-Latn-RO
        sr-Latn-TR tg-Arab-PK uz-Arab-AF uz-Cyrl-CN yue-Hans-CN zh-Hant-AU zh-Hant-BN zh-Hant-GB
        zh-Hant-GF zh-Hant-HK zh-Hant-ID zh-Hant-MO zh-Hant-PA zh-Hant-PF zh-Hant-PH zh-Hant-SR
        zh-Hant-TH zh-Hant-TW zh-Hant-US zh-Hant-VN
        """.split { $0 == " " || $0 == "\n" }.map { LocaleTag(String($0)) }

    /// Likely region of a language in an unusual script.
    private static let otherScripts: [LocaleTag] = """
        az-Arab-IR az-Cyrl-AZ bs-Cyrl-BA kk-Arab-CN ku-Arab-IQ ky-Arab-CN mn-Mong-CN ms-Arab-MY
        pa-Arab-PK sr-Latn-RS tg-Arab-PK uz-Arab-AF uz-Cyrl-UZ yue-Hans-CN zh-Hant-TW
        """.split { $0 == " " || $0 == "\n" }.map { LocaleTag(String($0)) }

    private static let spanish: LocaleTag = {
        var tag = LocaleTag("es")
        // UN M49 code of Latin America.
        tag.region = LocaleTag("es-Latn-419").region
        return tag
    }()

    private static let latinAmerica: Set<Subtag> = Set(
        "AR BO BR BZ CL CO CR CU DO EC GT HN MX NI PA PE PR PY SV US UY VE"
            .split(separator: " ").map { LocaleTag("es-Latn-\($0)").region })

    private static let macao = LocaleTag("zh-Hant-MO")
    private static let hongKong = LocaleTag("zh-Hant-HK")
    private static let nynorsk = LocaleTag("nn")
    private static let bokmal = LocaleTag("nb")
}
