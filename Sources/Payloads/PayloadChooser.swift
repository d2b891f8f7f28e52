import BroadsidePrimitives
import BroadsideSupport

/// Finds the payload for a row's language if the payload's name and the row's value spell the
/// language differently: `zh-TW` finds `zh-Hant`, `iw` finds `he`, `PT-br` finds `pt-BR`, and vice
/// versa. Does not allocate.
struct PayloadChooser: ~Copyable {
    /// A payload that is named after a language.
    struct Name: Sendable {
        let tag: LocaleTag
        /// The tag with script and region.
        let maximized: LocaleTag
        let template: Int
    }

    private let names: FixedBuffer<Name>
    private let namesCountries: Bool

    /// - Parameters:
    ///   - names: Name of each payload, and its index among the payloads.
    ///   - column: Name of the column that chooses the payload. A column of countries contains no
    ///     languages.
    init(_ names: [(value: [UInt8], template: Int)], column: String) {
        let column = column.lowercased()
        func mentions(_ words: [String]) -> Bool { words.contains { column.contains($0) } }
        let mayNameCountries = !mentions(["lang", "locale"])
        let isOfCountries =
            mayNameCountries
            && mentions(["country", "region", "state", "market", "territory", "geo", "nation"])
        let found: [Name] = names.compactMap { name in
            guard !isOfCountries,
                let tag = LocaleTag(
                    name.value.rawSpan, namesCountries: mayNameCountries, isWhole: true)
            else { return nil }
            return Name(tag: tag, maximized: tag.maximized, template: name.template)
        }
        self.names = FixedBuffer(found)
        namesCountries = mayNameCountries
    }

    /// Index of the payload for a value's language; nil if there is none.
    func find(_ value: RawSpan) -> Int? {
        guard names.count > 0, let tag = LocaleTag(value, namesCountries: namesCountries) else {
            return nil
        }
        // The same language, script and region, written differently.
        if let template = first(where: { $0.tag == tag }) { return template }
        let maximized = tag.maximized
        if let template = first(where: { $0.maximized == maximized }) { return template }
        if let parent = tag.parent,
            let template = first(where: { $0.tag == parent })
                ?? first(where: { $0.maximized == parent.maximized })
        {
            return template
        }
        // First the language in this script, in any region; then the language alone.
        let script = maximized.withoutRegion
        let general = script.maximized
        if let template = first(where: { $0.tag.region == 0 && $0.maximized == general }) {
            return template
        }
        return first { $0.tag == tag.withoutRegion }
    }

    /// Index of the payload for a value's language, regardless of script and region; nil if there
    /// is none.
    func findLanguage(of value: RawSpan) -> Int? {
        guard names.count > 0, let tag = LocaleTag(value, namesCountries: namesCountries) else {
            return nil
        }
        return first { $0.tag.language == tag.language && $0.tag.script == 0 && $0.tag.region == 0 }
    }

    private func first(where isMeant: (Name) -> Bool) -> Int? {
        for index in 0..<names.count where isMeant(names[index]) { return names[index].template }
        return nil
    }
}
