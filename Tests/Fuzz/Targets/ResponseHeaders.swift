import BroadsideHTTP2

extension FuzzTarget {
    /// A response's header block: the walker of the fast path, and nghttp2's inflater behind it.
    ///
    /// The first bytes choose how the block is framed; what it means must not depend on that.
    static let responseHeaders = FuzzTarget(name: "response-headers") { bytes in
        var input = FuzzInput(bytes)
        let first = 1 + input.choice(below: 64)
        let rounds = 1 + input.choice(below: 3)
        let block = Array(input.bytes.prefix(16_000))
        let conversation = Conversation(isGated: false)
        var whole: [UInt8] = []
        var pieces: [UInt8] = []
        // The same block again meets an inflater with a past.
        for round in 0..<rounds {
            let stream = UInt8(1 + 2 * round)
            whole += frame(1, 5, stream, block)
            pieces += frame(1, 1, stream, Array(block.prefix(first)))
            pieces += frame(9, 4, stream, Array(block.dropFirst(first)))
        }
        let one = conversation.hear([whole])
        let other = conversation.hear([pieces])
        precondition(one.events == other.events, "CONTINUATION changed a block's meaning")
    }

    /// A frame of HTTP/2.
    static func frame(
        _ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]
    ) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xff), UInt8(count & 0xff), kind, flags]
            + [0, 0, 0, stream] + payload
    }
}
