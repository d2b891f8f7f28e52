import BroadsideHTTP2

extension FuzzTarget {
    /// Header blocks of one direction, one after the other, as `HeaderBlockReader` reads them.
    ///
    /// The first bytes cut the input into blocks. What a block means depends on the blocks before it
    /// alone, literals mean what a reading by hand finds, and nothing is read after a failure or
    /// beyond the limit.
    static let headerBlocks = FuzzTarget(name: "header-blocks") { bytes in
        var input = FuzzInput(bytes)
        let size = 1 + input.choice(below: 256)
        let blocks = input.bytes.pieces(of: size).prefix(64)
        guard let reader = HeaderBlockReader(), let other = HeaderBlockReader() else { return }
        var hasFailed = false
        for block in blocks {
            let fields = reader.read(block.span.bytes)
            precondition(fields == other.read(block.span.bytes), "a block has two meanings")
            guard let fields else {
                precondition(hasFailed || literals(block) == nil, "sound literals are refused")
                hasFailed = true
                continue
            }
            precondition(!hasFailed, "a block is read after a failure")
            let count = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
            // An invalid byte of a name becomes three.
            precondition(
                count <= 3 * HeaderBlockReader.fieldByteCountMax, "fields beyond the limit")
            if let expected = literals(block) {
                precondition(fields == expected, "literals mean something else")
            }
        }
    }

    /// Fields of a block of literals without indexing whose names and values are plain and short
    /// (RFC 7541 section 6.2.2); nil for other blocks.
    private static func literals(_ block: [UInt8]) -> [HeaderBlockReader.Field]? {
        var fields: [HeaderBlockReader.Field] = []
        var rest = block[...]
        func text() -> [UInt8]? {
            guard let count = rest.popFirst(), count < 0x7f, rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(Int(count)) }
            return Array(rest.prefix(Int(count)))
        }
        while let first = rest.popFirst() {
            guard first == 0, let name = text(), let value = text() else { return nil }
            fields.append(.init(name: String(decoding: name, as: UTF8.self), value: value))
        }
        return fields
    }
}
