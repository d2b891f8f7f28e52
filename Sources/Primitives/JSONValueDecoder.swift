/// Decoder of a `JSONValue`. Keeps no coding paths, because no caller reads them.
struct JSONValueDecoder: Decoder {
    let value: JSONValue

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The error for a value of another kind.
    static func mismatch(_ kind: Any.Type) -> DecodingError {
        .typeMismatch(kind, .init(codingPath: [], debugDescription: "another kind of value"))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value else { throw Self.mismatch([String: Any].self) }
        return KeyedDecodingContainer(JSONObjectDecoder(members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw Self.mismatch([Any].self) }
        return JSONArrayDecoder(elements: elements)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        JSONScalarDecoder(value: value)
    }
}

private struct JSONObjectDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let members: [String: JSONValue]

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0) } }

    private func member(_ key: Key) throws -> JSONValueDecoder {
        guard let value = members[key.stringValue] else {
            throw DecodingError.keyNotFound(
                key, .init(codingPath: [], debugDescription: "a member is missing"))
        }
        return JSONValueDecoder(value: value)
    }

    func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        if case .null = try member(key).value { true } else { false }
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try Value(from: member(key))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try member(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try member(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        JSONValueDecoder(value: members["super"] ?? .null)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { try member(key) }
}

private struct JSONArrayDecoder: UnkeyedDecodingContainer {
    let elements: [JSONValue]
    private(set) var currentIndex = 0

    init(elements: [JSONValue]) { self.elements = elements }

    var codingPath: [any CodingKey] { [] }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }

    private func element() throws -> JSONValueDecoder {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                Any.self, .init(codingPath: [], debugDescription: "an element is missing"))
        }
        return JSONValueDecoder(value: elements[currentIndex])
    }

    mutating func decodeNil() throws -> Bool {
        guard case .null = try element().value else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let value = try Value(from: element())
        currentIndex += 1
        return value
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        let container = try element().container(keyedBy: type)
        currentIndex += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try element().unkeyedContainer()
        currentIndex += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try element()
        currentIndex += 1
        return decoder
    }
}

private struct JSONScalarDecoder: SingleValueDecodingContainer {
    let value: JSONValue

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool {
        if case .null = value { true } else { false }
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .boolean(let value) = value else { throw JSONValueDecoder.mismatch(type) }
        return value
    }

    func decode(_ type: String.Type) throws -> String {
        guard case .string(let value) = value else { throw JSONValueDecoder.mismatch(type) }
        return value
    }

    func decode(_ type: Double.Type) throws -> Double { try fraction() }
    func decode(_ type: Float.Type) throws -> Float { try fraction() }
    func decode(_ type: Int.Type) throws -> Int { try integer() }
    func decode(_ type: Int8.Type) throws -> Int8 { try integer() }
    func decode(_ type: Int16.Type) throws -> Int16 { try integer() }
    func decode(_ type: Int32.Type) throws -> Int32 { try integer() }
    func decode(_ type: Int64.Type) throws -> Int64 { try integer() }
    func decode(_ type: UInt.Type) throws -> UInt { try integer() }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try integer() }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try integer() }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try integer() }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try integer() }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try Value(from: JSONValueDecoder(value: value))
    }

    private func fraction<Number: LosslessStringConvertible & BinaryFloatingPoint>() throws
        -> Number
    {
        guard case .number(let text) = value, let number = Number(text), number.isFinite else {
            throw JSONValueDecoder.mismatch(Number.self)
        }
        return number
    }

    private func integer<Number: FixedWidthInteger>() throws -> Number {
        guard case .number(let text) = value else { throw JSONValueDecoder.mismatch(Number.self) }
        if let number = Number(text) { return number }
        // `1.0` and `1e3` are whole, too.
        guard let fraction = Double(text), let number = Number(exactly: fraction) else {
            throw JSONValueDecoder.mismatch(Number.self)
        }
        return number
    }
}
