/// Returns the option that was probably meant by an unknown name, compared word by word.
///
/// Words that say only what kind of value an option has do not count: `apns-topic` is `topic`,
/// `auth-key-file` is `auth-key`, and `max-rate` and `rate-limit` are `rate`. Only options with a path
/// are found by a name that ends in `file`, `path` or `dir`: `log-file` is not `log`.
///
/// - Parameters:
///   - name: The unknown name, without dashes at its start.
///   - options: Names of all options.
///   - paths: Names of the options whose value is a path.
/// - Returns: nil if no option is near enough.
package func nearestOption(
    to name: String, among options: [String], paths: [String]
) -> String? {
    let typed = OptionName(name)
    if options.contains(typed.core) {
        return typed.isPath && !paths.contains(typed.core) ? nil : typed.core
    }
    if let counted = typed.counted, options.contains(counted) { return counted }
    // The nearest name of the whole name would ignore what its words mean.
    let candidates = typed.isPath ? paths : options
    // Other forms of the options' names: without a plural, and without an ending.
    var names: [String: String] = [:]
    for option in candidates where option.hasSuffix("s") {
        names[String(option.dropLast())] = option
    }
    for option in candidates {
        let short = OptionName.withoutEnding(option, isPath: typed.isPath)
        if short != option, names[short] == nil { names[short] = option }
    }
    if let option = names[typed.core] { return option }
    if typed.core == name, let option = similar(to: name, among: options) { return option }
    if typed.core != name { for option in candidates { names[option] = option } }
    return similar(to: typed.core, among: names.keys.sorted()).flatMap { names[$0] }
}

/// Returns the nearest name. If its first letter is another one, only one letter may differ: hardly
/// anyone mistypes the first letter, and `binary` is not `canary`.
private func similar(to name: String, among names: [String]) -> String? {
    guard let found = nearestName(to: name, among: names) else { return nil }
    let (typed, near) = (NearestName.plain(name), NearestName.plain(found))
    let isClose = typed.utf8.first == near.utf8.first || NearestName.distance(typed, near) <= 1
    return isClose || NearestName.isSwap(typed, near) ? found : nil
}

/// The words of an option's name.
package struct OptionName {
    /// The name without words that do not count.
    package let core: String
    /// Whether the name ends in a word for a path.
    package let isPath: Bool
    /// The option of a number whose limit the name is; nil: it is none.
    fileprivate let counted: String?

    private static let pathEndings = ["file", "path", "dir", "directory", "filename"]
    private static let limitEndings = ["limit", "count", "number"]
    /// Options whose value is a limit on a number.
    private static let limits = ["rate", "connections", "reactors", "limit"]
    /// Last words that are often left out.
    private static let endings = ["run", "id", "type", "after", "column", "frames"]

    package init(_ name: String) {
        var parts = name.lowercased().split { $0 == "-" || $0 == "_" }.map(String.init)
        if parts.count > 1, parts[0] == "apns" { parts.removeFirst() }
        isPath = parts.count > 1 && Self.pathEndings.contains(parts[parts.count - 1])
        if isPath { parts.removeLast() }
        core = parts.joined(separator: "-")
        var number = parts
        if number.first == "max" { number.removeFirst() }
        if let last = number.last, number.count > 1, Self.limitEndings.contains(last) {
            number.removeLast()
        }
        let base = number.joined(separator: "-")
        counted = !isPath && number != parts && Self.limits.contains(base) ? base : nil
    }

    /// Returns an option's name without its last word, if that word is often left out.
    fileprivate static func withoutEnding(_ option: String, isPath: Bool) -> String {
        guard let (start, last) = option.parts(atLast: "-") else { return option }
        return (isPath ? pathEndings : endings).contains(String(last)) ? String(start) : option
    }
}
