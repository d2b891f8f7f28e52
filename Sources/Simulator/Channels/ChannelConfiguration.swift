internal import BroadsideAPNs
internal import BroadsidePrimitives

/// Body of a request that creates a channel.
enum ChannelConfiguration {
    /// Returns the storage policy that a body requests.
    ///
    /// - Throws: The reason for refusing the body.
    static func storage(
        _ body: [UInt8]
    ) throws(ChannelRequest.Refusal) -> BroadcastChannel.Storage {
        guard !body.isEmpty else { throw .init(.payloadEmpty) }
        guard PayloadRules.isJSONObject(body.span.rawBytes) else {
            throw .init(.badRequestPayload)
        }
        var policy: BroadcastChannel.Storage?
        var pushType: String?
        for (name, value, isNumber) in members(body) {
            switch name {
            case "message-storage-policy":
                policy =
                    isNumber ? Int(value).flatMap(BroadcastChannel.Storage.init(policy:)) : nil
            case "push-type": pushType = value
            default: throw .init(.badRequestParams)
            }
        }
        guard let pushType else { throw .init(.missingPushType) }
        guard pushType.lowercased() == BroadcastChannel.pushType.lowercased() else {
            throw .init(.invalidPushType)
        }
        guard let policy else { throw .init(.missingChannelQueueSize) }
        return policy
    }

    /// Members of a JSON object, with their values as text. A value that is neither a string nor a
    /// number becomes an empty text.
    private static func members(
        _ body: [UInt8]
    ) -> [(name: String, value: String, isNumber: Bool)] {
        let text = body.span.rawBytes
        var found: [(name: String, value: String, isNumber: Bool)] = []
        var tokenizer = JSONTokenizer()
        while let token = try? tokenizer.next(in: text) {
            guard token.kind == .key, tokenizer.depth == 1 else { continue }
            guard let value = try? tokenizer.next(in: text) else { break }
            let isText = value.kind == .string || value.kind == .number
            found.append(
                (
                    String(decoding: text.extracting(token.range)),
                    isText ? String(decoding: text.extracting(value.range)) : "",
                    value.kind == .number
                ))
        }
        return found
    }
}
