internal import BroadsideSupport

/// A request about channels, with its result. It exists from the end of the header block to the
/// last byte of the response.
final class ChannelExchange {
    /// The request; nil if its header block is refused.
    let request: ChannelRequest?
    /// The result; valid once the request is complete.
    var result = ChannelStore.Result(response: .untaken)
    private var offset = 0

    init(_ request: ChannelRequest?) {
        self.request = request
    }

    /// Whether the body of the response was read completely.
    var isBodyRead: Bool { offset == result.body.count }

    /// Appends the next bytes of the response body to `target`, at most `most`.
    func readBody(into target: inout OutputRawSpan, most: Int) {
        assert(offset <= result.body.count, "no more is read than there is")
        let end = min(result.body.count, offset + min(most, target.freeCapacity))
        while offset < end {
            target.append(result.body[offset])
            offset += 1
        }
    }
}
