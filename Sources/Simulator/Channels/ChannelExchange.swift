internal import BroadsideSupport

/// A request about channels and its result, from the end of its header block to its last byte.
final class ChannelExchange {
    /// The request; nil if its header block is refused.
    let request: ChannelRequest?
    /// The result, once the request is complete.
    var result = ChannelStore.Result(response: .untaken)
    private var offset = 0

    init(_ request: ChannelRequest?) {
        self.request = request
    }

    /// Whether the body of the response was read completely.
    var isBodyRead: Bool { offset == result.body.count }

    /// Reads at most `most` further bytes of the response body.
    func readBody(into target: inout OutputRawSpan, most: Int) {
        assert(offset <= result.body.count, "no more is read than there is")
        let end = min(result.body.count, offset + min(most, target.freeCapacity))
        while offset < end {
            target.append(result.body[offset])
            offset += 1
        }
    }
}
