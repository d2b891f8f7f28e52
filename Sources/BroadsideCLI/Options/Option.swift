import BroadsideAPNs
import BroadsideCampaigns
import BroadsideSupport

/// The values of a command's options.
protocol OptionValues: Sendable {
    /// The values if no option is given.
    static var defaults: Self { get }
}

/// Option, and the property that its value sets. Name, kind, property and help of an option are in
/// one entry. The option's default is the property's default.
struct Option<Values: OptionValues>: Sendable {
    typealias Property<Value> = any WritableKeyPath<Values, Value> & Sendable

    let description: OptionDescription
    /// Sets the property if the option is given.
    let read: @Sendable (ParsedArguments, inout Values) throws(BroadsideError) -> Void

    init(
        _ description: OptionDescription,
        read: @escaping @Sendable (ParsedArguments, inout Values) throws(BroadsideError) -> Void
    ) {
        self.description = description
        self.read = read
    }

    /// Option with its own parser.
    static func custom(
        _ name: String, _ kind: OptionKind, _ placeholder: String, _ help: String,
        _ read: @escaping @Sendable (String, inout Values) throws(BroadsideError) -> Void
    ) -> Option {
        Option(.init(name, kind, placeholder, help)) { (arguments, values) throws(BroadsideError) in
            if let text = arguments.string(name) { try read(text, &values) }
        }
    }

    /// Option that may be repeated.
    static func repeated(
        _ name: String, _ kind: OptionKind, _ placeholder: String, _ property: Property<[String]>,
        _ help: String
    ) -> Option {
        Option(.init(name, kind, placeholder, help, isRepeatable: true)) {
            (arguments, values) throws(BroadsideError) in
            values[keyPath: property] = arguments.strings(name)
        }
    }

    static func flag(_ name: String, _ property: Property<Bool>, _ help: String) -> Option {
        Option(.init(name, .flag, nil, help)) { (arguments, values) throws(BroadsideError) in
            if arguments.has(name) { values[keyPath: property] = true }
        }
    }

    static func text(
        _ name: String, _ placeholder: String, _ property: Property<String?>, _ help: String
    ) -> Option {
        custom(name, .text, placeholder, help) { (text, values) throws(BroadsideError) in
            values[keyPath: property] = text
        }
    }

    static func text(
        _ name: String, _ placeholder: String, _ property: Property<String>, _ help: String
    ) -> Option {
        let help = withDefault(help, Values.defaults[keyPath: property])
        return custom(name, .text, placeholder, help) { (text, values) throws(BroadsideError) in
            values[keyPath: property] = text
        }
    }

    static func file(
        _ name: String, _ property: Property<String?>, use: OptionKind.FileUse = .read,
        placeholder: String = "FILE", _ help: String
    ) -> Option {
        custom(name, .file(use), placeholder, help) { (text, values) throws(BroadsideError) in
            values[keyPath: property] = text
        }
    }

    // MARK: Numbers

    /// Whole number without a default value; the help describes the default behavior.
    static func integer<Number: FixedWidthInteger & Sendable>(
        _ name: String, _ range: ClosedRange<Int>, _ property: Property<Number?>, _ help: String
    ) -> Option {
        assert(
            Number(exactly: range.lowerBound) != nil && Number(exactly: range.upperBound) != nil,
            "\(name): each value has room")
        return Option(.init(name, .number, "N", help)) {
            (arguments, values) throws(BroadsideError) in
            if let value = try arguments.integer(name, in: range) {
                values[keyPath: property] = Number(value)
            }
        }
    }

    static func integer<Number: FixedWidthInteger & Sendable>(
        _ name: String, _ range: ClosedRange<Int>, _ property: Property<Number>, _ help: String
    ) -> Option {
        assert(
            range.contains(Int(clamping: Values.defaults[keyPath: property])),
            "\(name): the default is one of the values")
        let help = withDefault(help, "\(Values.defaults[keyPath: property])")
        return Option(.init(name, .number, "N", help)) {
            (arguments, values) throws(BroadsideError) in
            if let value = try arguments.integer(name, in: range) {
                values[keyPath: property] = Number(value)
            }
        }
    }

    /// Requests per second, or a rising rate.
    static func sendRate(
        _ name: String, _ property: Property<SendRate?>, _ help: String
    ) -> Option {
        Option(.init(name, .number, "N", help)) { (arguments, values) throws(BroadsideError) in
            if let value = try arguments.sendRate(name) { values[keyPath: property] = value }
        }
    }

    /// Number above zero.
    static func rate(_ name: String, _ property: Property<Double?>, _ help: String) -> Option {
        Option(.init(name, .number, "N", help)) { (arguments, values) throws(BroadsideError) in
            if let value = try arguments.positiveNumber(name) { values[keyPath: property] = value }
        }
    }

    static func percentage(
        _ name: String, _ property: Property<Double>, _ help: String
    ) -> Option {
        assert(
            (0...100).contains(Values.defaults[keyPath: property]),
            "\(name): the default is a percentage")
        let help = withDefault(help, shortText(Values.defaults[keyPath: property]))
        return Option(.init(name, .number, "P", help)) {
            (arguments, values) throws(BroadsideError) in
            if let value = try arguments.percentage(name) { values[keyPath: property] = value }
        }
    }

    /// Option whose value is a share, from 0 to 1.
    static func share(_ name: String, _ property: Property<Double>, _ help: String) -> Option {
        assert(
            (0...1).contains(Values.defaults[keyPath: property]), "\(name): the default is a share")
        let help = withDefault(help, shortText(Values.defaults[keyPath: property]))
        return Option(.init(name, .number, "SHARE", help)) {
            (arguments, values) throws(BroadsideError) in
            if let value = try arguments.share(name) { values[keyPath: property] = value }
        }
    }

    // MARK: Durations

    /// Duration in nanoseconds; the help describes the default behavior.
    static func duration(
        _ name: String, _ property: Property<UInt64?>, default value: UInt64? = nil,
        least: UInt64 = 0, _ help: String
    ) -> Option {
        assert(value.map { $0 >= least } ?? true, "\(name): the default is one of the values")
        let help = value.map { withDefault(help, durationText(nanoseconds: $0)) } ?? help
        return Option(.init(name, .text, "D", help)) { (arguments, values) throws(BroadsideError) in
            guard let value = try arguments.duration(name) else { return }
            guard value >= least else { throw .usage(name, "must be above 0") }
            values[keyPath: property] = value
        }
    }

    /// Duration in nanoseconds, with the property's default.
    static func duration(
        _ name: String, _ property: Property<UInt64>, least: UInt64 = 0, _ help: String
    ) -> Option {
        assert(
            Values.defaults[keyPath: property] >= least,
            "\(name): the default is one of the values")
        let help = withDefault(help, durationText(nanoseconds: Values.defaults[keyPath: property]))
        return Option(.init(name, .text, "D", help)) {
            (arguments, values) throws(BroadsideError) in
            guard let value = try arguments.duration(name) else { return }
            guard value >= least else { throw .usage(name, "must be above 0") }
            values[keyPath: property] = value
        }
    }

    // MARK: Choices

    /// Value of an enumeration, without a default value; the help describes the default behavior.
    static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ property: Property<Value?>, placeholder: String? = nil, _ help: String
    ) -> Option where Value.RawValue == String {
        choice(name, placeholder, help) { (value: Value, values) in
            values[keyPath: property] = value
        }
    }

    static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ property: Property<Value>, placeholder: String? = nil, _ help: String
    ) -> Option where Value.RawValue == String {
        let help = withDefault(help, Values.defaults[keyPath: property].rawValue)
        return choice(name, placeholder, help) { (value: Value, values) in
            values[keyPath: property] = value
        }
    }

    private static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String, _ placeholder: String?, _ help: String,
        _ set: @escaping @Sendable (Value, inout Values) -> Void
    ) -> Option where Value.RawValue == String {
        let names = Value.allCases.map(\.rawValue)
        let shown = placeholder ?? names.joined(separator: "|")
        return Option(.init(name, .choice(names), shown, help)) {
            (arguments, values) throws(BroadsideError) in
            if let value = try arguments.choice(name, Value.self) { set(value, &values) }
        }
    }

    /// Value of apns-priority.
    ///
    /// - Parameter words: The values, in the order of the help.
    static func priority(
        _ words: [String], _ help: String,
        _ set: @escaping @Sendable (Priority, inout Values) -> Void
    ) -> Option {
        custom("priority", .choice(words), words.joined(separator: "|"), help) {
            (text, values) throws(BroadsideError) in
            guard let priority = UInt8(text).flatMap(Priority.init(rawValue:)) else {
                throw .usage("priority", "'\(text)' is unknown: use 10, 5 or 1")
            }
            set(priority, &values)
        }
    }

    /// Value of apns-expiration.
    static func expiration(
        _ help: String, _ set: @escaping @Sendable (Expiration, inout Values) -> Void
    ) -> Option {
        custom("expiration", .number, "WHEN", help) { (text, values) throws(BroadsideError) in
            guard let value = BroadsideCampaigns.expiration(text) else {
                throw .usage(
                    "expiration",
                    "'\(text)' is unknown: use 0, Unix seconds, +90s, +2h, or a date like "
                        + "2030-01-31T18:00Z")
            }
            try SendOptions.checkExpiration(value)
            set(value, &values)
        }
    }

    // MARK: Help

    private static func withDefault(_ help: String, _ value: String) -> String {
        "\(help) (default: \(value))"
    }
}

/// Options of one command under a heading of its help.
struct OptionGroup<Values: OptionValues>: Sendable {
    let title: String
    let options: [Option<Values>]

    /// Descriptions of the options, for help and parser.
    var section: OptionSection {
        OptionSection(title: title, options: options.map(\.description))
    }

    /// Reads the values of the options that are given.
    func read(_ arguments: ParsedArguments, into values: inout Values) throws(BroadsideError) {
        for option in options { try option.read(arguments, &values) }
    }
}

extension [OptionDescription] {
    func named(_ name: String) -> OptionDescription? { first { $0.name == name } }
}

/// Number without decimals if it is whole.
private func shortText(_ value: Double) -> String {
    value == value.rounded() ? "\(Int(value))" : "\(value)"
}

/// Text of a duration, such as `90s` or `15m`. Uses the largest unit in which the duration is a
/// whole number of at least 2.
private func durationText(nanoseconds: UInt64) -> String {
    let units: [(String, UInt64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000),
        ("s", 1_000_000_000), ("ms", 1_000_000),
    ]
    for (name, scale) in units where nanoseconds % scale == 0 && nanoseconds / scale >= 2 {
        return "\(nanoseconds / scale)\(name)"
    }
    return "\(nanoseconds / 1_000_000)ms"
}

extension SendOptions: OptionValues {
    static var defaults: SendOptions { SendOptions() }
}
