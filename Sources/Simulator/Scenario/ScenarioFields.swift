internal import BroadsidePrimitives

/// An error in a scenario and its location.
struct ScenarioError: Error, Equatable {
    var message: String
    var position: JSON5Position
}

/// The members of one object in a scenario. Each member is read by its name. A member that was not
/// read is an error.
struct ScenarioFields {
    let position: JSON5Position
    private let members: [JSON5Value.Member]
    private var known: [String] = []

    init(_ value: JSON5Value, _ what: String) throws(ScenarioError) {
        guard case .object(let members) = value.content else {
            throw ScenarioError(
                message: "\(what) must be an object: write { ... }", position: value.position)
        }
        self.members = members
        position = value.position
    }

    /// Throws an error if a member was not read, because its name is unknown.
    func finish(_ what: String) throws(ScenarioError) {
        for member in members where !known.contains(member.name) {
            throw ScenarioError(
                message: "'\(member.name)' is unknown in \(what): "
                    + "write one of \(known.joined(separator: ", "))",
                position: member.position)
        }
    }

    mutating func value(_ name: String) -> JSON5Value? {
        assert(!known.contains(name), "a field is read once")
        known.append(name)
        return members.first { $0.name == name }?.value
    }

    func has(_ name: String) -> Bool { members.contains { $0.name == name } }

    mutating func object(_ name: String) throws(ScenarioError) -> ScenarioFields? {
        guard let value = value(name) else { return nil }
        return try ScenarioFields(value, "'\(name)'")
    }

    mutating func array(_ name: String) throws(ScenarioError) -> [JSON5Value] {
        guard let value = value(name) else { return [] }
        guard case .array(let elements) = value.content else {
            throw ScenarioError(
                message: "'\(name)' must be a list: write [ ... ]", position: value.position)
        }
        return elements
    }

    mutating func text(_ name: String) throws(ScenarioError) -> String? {
        guard let value = value(name) else { return nil }
        return try Self.text(value, name)
    }

    private static func text(_ value: JSON5Value, _ name: String) throws(ScenarioError) -> String {
        guard case .string(let text) = value.content else {
            throw ScenarioError(
                message: "'\(name)' must be text: put it in quotes", position: value.position)
        }
        return text
    }

    mutating func boolean(_ name: String) throws(ScenarioError) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .boolean(let flag) = value.content else {
            throw ScenarioError(
                message: "'\(name)' must be true or false", position: value.position)
        }
        return flag
    }

    /// Reads a whole number within a range.
    mutating func integer(
        _ name: String, in range: ClosedRange<UInt64>
    ) throws(ScenarioError) -> UInt64? {
        guard let value = value(name) else { return nil }
        guard let number = value.number, let whole = UInt64(exactly: number),
            range.contains(whole)
        else {
            throw ScenarioError(
                message: "'\(name)' must be a whole number from \(range.lowerBound) to "
                    + "\(range.upperBound)",
                position: value.position)
        }
        return whole
    }

    /// Reads a number within a range.
    mutating func number(
        _ name: String, in range: ClosedRange<Double>
    ) throws(ScenarioError) -> Double? {
        guard let value = value(name) else { return nil }
        guard let number = value.number, range.contains(number) else {
            throw ScenarioError(
                message:
                    "'\(name)' must be a number from \(range.lowerBound) to \(range.upperBound)",
                position: value.position)
        }
        return number
    }

    /// Reads a duration, such as `50us`, `20ms`, `2s`, `15m`, `2h` or `30d`, as nanoseconds.
    mutating func duration(_ name: String) throws(ScenarioError) -> UInt64? {
        guard let value = value(name) else { return nil }
        return try Self.duration(value, name)
    }

    static func duration(_ value: JSON5Value, _ name: String) throws(ScenarioError) -> UInt64 {
        if case .string(let text) = value.content, let nanoseconds = Self.nanoseconds(text) {
            return nanoseconds
        }
        throw ScenarioError(
            message:
                "'\(name)' must be a duration: write it like \"50us\", \"20ms\", \"2s\" or \"15m\"",
            position: value.position)
    }

    /// Parses a duration of at most one year, so that sums never overflow.
    static func nanoseconds(_ text: String) -> UInt64? {
        let units: [(String, UInt64)] = [
            ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000),
            ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
        ]
        for (suffix, scale) in units where text.hasSuffix(suffix) {
            let digits = text.dropLast(suffix.count)
            guard digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let value = UInt64(digits)
            else { continue }
            let (product, overflow) = value.multipliedReportingOverflow(by: scale)
            return overflow || product > 366 * 86_400_000_000_000 ? nil : product
        }
        return nil
    }

    /// Reads the name of an enumeration case.
    mutating func choice<Value: RawRepresentable & CaseIterable>(
        _ name: String, _ type: Value.Type
    ) throws(ScenarioError) -> Value? where Value.RawValue == String {
        guard let value = value(name) else { return nil }
        if case .string(let text) = value.content, let choice = Value(rawValue: text) {
            return choice
        }
        let names = Value.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        throw ScenarioError(message: "'\(name)' must be one of \(names)", position: value.position)
    }

    /// Returns the value of a member that was just read. Throws if the member is absent.
    func required<Value>(_ value: Value?, _ name: String) throws(ScenarioError) -> Value {
        guard let value else {
            throw ScenarioError(message: "'\(name)' is missing here: add it", position: position)
        }
        return value
    }
}
