/// Encoder into a `JSONNode`. Keeps no coding paths, because the errors that need them do not
/// occur.
struct JSONNodeEncoder: Encoder {
    let node: JSONNode

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.becomeObject()
        return KeyedEncodingContainer(JSONObjectEncoder(node: node))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.becomeArray()
        return JSONArrayEncoder(node: node)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        JSONScalarEncoder(node: node)
    }
}

private struct JSONObjectEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: JSONNode

    var codingPath: [any CodingKey] { [] }

    private func member(_ key: Key) -> JSONNodeEncoder {
        JSONNodeEncoder(node: node.setMember(key.stringValue))
    }

    func encodeNil(forKey key: Key) { member(key).node.content = .word("null") }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try value.encode(to: member(key))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { member(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        member(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { JSONNodeEncoder(node: node.setMember("super")) }

    func superEncoder(forKey key: Key) -> any Encoder { member(key) }
}

private struct JSONArrayEncoder: UnkeyedEncodingContainer {
    let node: JSONNode

    var codingPath: [any CodingKey] { [] }

    var count: Int {
        guard case .array(let elements) = node.content else { return 0 }
        return elements.count
    }

    private func element() -> JSONNodeEncoder { JSONNodeEncoder(node: node.appendElement()) }

    func encodeNil() { element().node.content = .word("null") }

    func encode<Value: Encodable>(_ value: Value) throws { try value.encode(to: element()) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> { element().container(keyedBy: type) }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { element().unkeyedContainer() }

    func superEncoder() -> any Encoder { element() }
}

private struct JSONScalarEncoder: SingleValueEncodingContainer {
    let node: JSONNode

    var codingPath: [any CodingKey] { [] }

    func encodeNil() { node.content = .word("null") }
    func encode(_ value: Bool) { node.content = .word(value ? "true" : "false") }
    func encode(_ value: String) { node.content = .string(value) }
    func encode(_ value: Double) throws { try put(value) }
    func encode(_ value: Float) throws { try put(value) }
    func encode(_ value: Int) { put(value) }
    func encode(_ value: Int8) { put(value) }
    func encode(_ value: Int16) { put(value) }
    func encode(_ value: Int32) { put(value) }
    func encode(_ value: Int64) { put(value) }
    func encode(_ value: UInt) { put(value) }
    func encode(_ value: UInt8) { put(value) }
    func encode(_ value: UInt16) { put(value) }
    func encode(_ value: UInt32) { put(value) }
    func encode(_ value: UInt64) { put(value) }
    func encode<Value: Encodable>(_ value: Value) throws {
        try value.encode(to: JSONNodeEncoder(node: node))
    }

    private func put(_ value: some FixedWidthInteger) { node.content = .word(String(value)) }

    private func put(_ value: some BinaryFloatingPoint & CustomStringConvertible) throws {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "JSON has only finite numbers"))
        }
        let text = value.description
        node.content = .word(text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
    }
}
