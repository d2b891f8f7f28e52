public import BroadsideSupport

/// Label of a campaign (`--label KEY=VALUE`). Like the campaign's name, it appears in metrics, log,
/// summary, report and `status`.
public enum CampaignLabel {
    /// Maximum number of labels per campaign.
    public static let countMax = 16
    /// Maximum length of a key, in bytes.
    public static let keyByteCountMax = 64
    /// Maximum length of a value, in bytes.
    public static let valueByteCountMax = 200

    /// The keys that a label must not have: labels of the metrics themselves (`MetricsText`), and
    /// labels that Prometheus adds when it scrapes.
    static let reservedKeys: Set<String> = [
        "campaign", "instance", "job", "le", "limited_by", "name", "part", "phase", "quantile",
        "reason", "rule", "state", "version",
    ]

    /// Splits `KEY=VALUE` into key and value, and checks both.
    ///
    /// - Parameter text: Value of the option.
    /// - Throws: A description of the problem.
    public static func parse(
        _ text: String
    ) throws(BroadsideError) -> (key: String, value: String) {
        guard let (key, value) = text.parts(atFirst: "=") else {
            throw .usage("label", "'\(text)' is not a label: write KEY=VALUE, such as country=de")
        }
        try check(String(key), String(value))
        return (String(key), String(value))
    }

    /// Checks a campaign's labels.
    ///
    /// - Parameter labels: Values by key.
    /// - Throws: A description of the first invalid label.
    public static func check(_ labels: [String: String]) throws(BroadsideError) {
        for (key, value) in labels.sorted(by: { $0.key < $1.key }) { try check(key, value) }
        guard labels.count <= countMax else {
            throw .usage(
                "label", "is given for \(labels.count) keys, but at most \(countMax) are allowed")
        }
    }

    /// Checks a label against Prometheus' data model: a key matches `[a-zA-Z_][a-zA-Z0-9_]*`, and
    /// keys that begin with `__` are reserved.
    private static func check(_ key: String, _ value: String) throws(BroadsideError) {
        let isName =
            key.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            } && key.utf8.first.map { !(48...57).contains($0) } ?? false
        guard isName, key.utf8.count <= keyByteCountMax else {
            throw .usage(
                "label",
                "'\(key)' can't be a key: use 1 to \(keyByteCountMax) letters, digits and "
                    + "underscores, with no digit at the start")
        }
        guard !reservedKeys.contains(key), !key.starts(withBytes: "__") else {
            throw .usage("label", "'\(key)' is reserved in metrics: use another key")
        }
        guard !value.isEmpty, value.utf8.count <= valueByteCountMax,
            !value.unicodeScalars.contains(where: ForeignText.isInvisible)
        else {
            throw .usage(
                "label",
                "\(key) takes 1 to \(valueByteCountMax) bytes without control characters: write a "
                    + "short text")
        }
    }

    /// Labels on one line, such as `country=de, team=news`; nil if there are none.
    ///
    /// - Parameter labels: Values by key.
    package static func text(_ labels: [String: String]) -> String? {
        guard !labels.isEmpty else { return nil }
        return labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            .joined(separator: ", ")
    }

    /// Labels as a JSON object.
    ///
    /// - Parameter labels: Values by key.
    package static func json(_ labels: [String: String]) -> JSONLine {
        var line = JSONLine()
        for (key, value) in labels.sorted(by: { $0.key < $1.key }) { line.add(key, value) }
        return line
    }
}
