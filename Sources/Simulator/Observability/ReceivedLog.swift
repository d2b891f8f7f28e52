internal import BroadsideAPNs
internal import BroadsideSupport
internal import Synchronization

/// The newest requests, for tests that check what the simulator received.
///
/// Shared by all threads of an endpoint. When a limit is reached, the oldest requests are removed.
final class ReceivedLog: Sendable {
    /// Maximum number of bytes of all kept requests: header fields and payloads.
    static let bytesLimit = 64 << 20

    private struct State {
        var rows: [ReceivedRequest] = []
        /// Index of the oldest request in `rows`. The elements before it are requests that were
        /// removed.
        var first = 0
        var bytes = 0
        /// Number of the last request; 0 before the first request, which has the number 1.
        var last: UInt64 = 0
        /// Number of requests that were removed.
        var dropped: UInt64 = 0
        /// Number of calls of `removeAll`.
        var resets: UInt64 = 0
    }

    /// A location in the log, after the request with a number.
    struct Mark {
        fileprivate(set) var number: UInt64
        /// The number of resets at which the request has, or will have, this number.
        fileprivate var resets: UInt64
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: Maximum number of requests.
    init(limit: Int) {
        assert(limit > 0, "a log that keeps nothing is not created")
        self.limit = limit
    }

    /// Adds a request, and assigns its number.
    func append(_ request: ReceivedRequest) {
        var request = request
        state.withLock { state in
            state.last += 1
            request.number = state.last
            state.bytes += request.byteCount
            state.rows.append(request)
            while state.rows.count - state.first > limit
                || state.bytes > Self.bytesLimit && state.rows.count - state.first > 1
            {
                state.bytes -= state.rows[state.first].byteCount
                state.rows[state.first] = ReceivedRequest()
                state.first += 1
                state.dropped += 1
            }
            // The elements of removed requests are deleted many at a time.
            if state.first > 1024, state.first > state.rows.count / 2 {
                state.rows.removeFirst(state.first)
                state.first = 0
            }
            assert(
                UInt64(state.rows.count - state.first) + state.dropped == state.last,
                "each request is kept or was dropped")
            assert(state.bytes >= 0 && state.first < state.rows.count, "the newest is kept")
        }
    }

    /// Those requests of the log that a filter selects.
    struct Selection {
        /// The requests, the oldest first.
        var rows: [ReceivedRequest] = []
        /// Number of all requests since the start, or since `removeAll`.
        var total: UInt64 = 0
        /// Number of requests that were removed.
        var dropped: UInt64 = 0
        /// Whether the filter selects more requests than the limit permits.
        var hasMore = false
    }

    /// Returns at most `limit` of the requests that a filter selects and whose number is greater
    /// than `number`.
    func select(
        after number: UInt64, limit: Int, _ filter: ReceivedFilter
    ) -> Selection {
        state.withLock { state in
            var selection = Selection(total: state.last, dropped: state.dropped)
            for row in state.rows[state.first...] where row.number > number && filter.selects(row) {
                guard selection.rows.count < limit else {
                    selection.hasMore = true
                    break
                }
                selection.rows.append(row)
            }
            return selection
        }
    }

    /// Returns the mark after the request with a number, which may be still to come.
    func mark(_ number: UInt64) -> Mark {
        state.withLock { Mark(number: number, resets: $0.resets) }
    }

    /// Counts the requests after a mark that a filter selects, and moves the mark after the last
    /// request. If a reset came since, counts all requests after the reset.
    func count(after mark: inout Mark, _ filter: ReceivedFilter) -> Int {
        state.withLock { state in
            if mark.resets != state.resets { mark = Mark(number: 0, resets: state.resets) }
            guard state.last > mark.number else { return 0 }
            // The rows have consecutive numbers.
            let known = UInt64(state.rows.count - state.first)
            let unseen = Int(min(known, state.last - mark.number))
            mark.number = state.last
            var count = 0
            for row in state.rows[(state.rows.count - unseen)...] where filter.selects(row) {
                count += 1
            }
            return count
        }
    }

    /// Removes all requests. The next request has the number 1.
    func removeAll() { state.withLock { $0 = State(resets: $0.resets + 1) } }
}

/// One request as it was received, and the response to it: a request over HTTP/2, or a notification
/// of the legacy gateway.
struct ReceivedRequest: Sendable {
    /// The fields of a notification of the legacy gateway, which has no header fields.
    struct GatewayFields: Sendable {
        /// The topic of the client's certificate; nil if it names none.
        var topic: String?
        /// The identifier that the client gave the notification; nil for command 0, which has none.
        var identifier: UInt32?
        /// Unix seconds.
        var expiration: UInt32?
        var priority: UInt8?
    }

    /// A header field.
    struct Field: Sendable {
        var name: String
        var value: String
    }

    /// Maximum number of bytes kept of a body.
    static let bodyLimit = 8192

    var number: UInt64 = 0
    /// Time at which the request was complete, microseconds since the epoch.
    var microseconds: UInt64 = 0
    var connection: UInt64 = 0
    var stream: UInt32 = 0
    /// `apns-id` or `apns-request-id` of the response.
    var identifier = ""
    var token = ""
    var response = Response.untaken
    /// Header fields in the order received, including pseudo-header fields. The provider token is
    /// not kept.
    var fields: [Field] = []
    /// Key, team and issue time of the provider token; nil if the request has no readable provider
    /// token.
    var providerToken: ProviderTokenClaims?
    /// The fields of a notification of the legacy gateway; nil for a request over HTTP/2.
    var gateway: GatewayFields?
    /// The beginning of the body.
    var body: [UInt8] = []
    var bodyCount = 0

    /// The only topic of the client's certificate; nil if there is no certificate, or it has
    /// several topics.
    var certificateTopic: String?

    /// The `apns-topic` header or, without it, the topic of the client's certificate.
    var topic: String? { gateway.map(\.topic) ?? value("apns-topic") ?? certificateTopic }

    /// Number of bytes that count towards `bytesLimit`.
    var byteCount: Int {
        fields.reduce(body.count + 512) { $0 + $1.name.utf8.count + $1.value.utf8.count + 64 }
    }

    /// The value of a header field; nil if it is absent. The values of repeated fields are joined
    /// by commas.
    func value(_ name: String) -> String? {
        let values = fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Adds a header field.
    mutating func add(name: RawSpan, value: RawSpan) {
        let name = String(decoding: name)
        guard name == "authorization" else {
            fields.append(Field(name: name, value: String(decoding: value)))
            return
        }
        // A provider token never appears in an output.
        let scheme = "bearer "
        guard value.byteCount > scheme.utf8.count else {
            fields.append(Field(name: name, value: "…"))
            return
        }
        let token = Array(value.extracting(scheme.utf8.count...))
        providerToken = (try? ProviderTokenClaims.parse(token))?.claims
        fields.append(
            Field(
                name: name,
                value: providerToken == nil
                    ? "…" : String(decoding: value.extracting(first: 7)) + "…"
            ))
    }

    /// Adds bytes of the body.
    mutating func add(body bytes: RawSpan) {
        bodyCount += bytes.byteCount
        let room = Self.bodyLimit - body.count
        if room > 0 { body += Array(bytes.extracting(first: min(room, bytes.byteCount))) }
        assert(body.count == min(bodyCount, Self.bodyLimit), "the beginning of a body is kept")
    }

    /// The request as a JSON object on one line.
    var json: String {
        var line = JSONLine()
        line.add("number", number)
        line.add("t_us", microseconds)
        line.add("connection", connection)
        line.add("protocol", gateway == nil ? "http2" : "binary")
        if let gateway {
            add(gateway, to: &line)
            return line.object
        }
        line.add("stream", UInt64(stream))
        line.add("method", value(":method"))
        line.add("path", value(":path"))
        line.add("token", token.isEmpty ? nil : token)
        line.add("topic", topic)
        line.add("apns_id", identifier)
        // Without a status, the request was not processed: its stream was refused, or GOAWAY
        // excludes it.
        line.add("status", response.status == 0 ? nil : UInt64(response.status))
        line.add("reason", response.reason?.text)
        var headers = JSONLine()
        var names: Set<String> = []
        for field in fields where !field.name.hasPrefix(":") && names.insert(field.name).inserted {
            headers.add(field.name, value(field.name))
        }
        line.add("headers", headers)
        if let providerToken {
            var claims = JSONLine()
            claims.add("key_id", providerToken.keyID)
            claims.add("team_id", providerToken.teamID)
            claims.add("issued_at", providerToken.issuedAtUnixSeconds)
            line.add("provider_token", claims)
        } else {
            line.addRaw("provider_token", "null")
        }
        addPayload(to: &line)
        return line.object
    }

    /// Adds the fields of a notification that the legacy gateway received. As in the error packet,
    /// status 0 means that the gateway accepted the notification.
    private func add(_ gateway: GatewayFields, to line: inout JSONLine) {
        line.add("identifier", gateway.identifier.map(UInt64.init))
        line.add("token", token.isEmpty ? nil : token)
        line.add("topic", gateway.topic)
        line.add("expiration", gateway.expiration.map(UInt64.init))
        line.add("priority", gateway.priority.map(UInt64.init))
        line.add("status", UInt64(response.status))
        line.add("reason", response.reason?.text)
        addPayload(to: &line)
    }

    private func addPayload(to line: inout JSONLine) {
        line.add("payload_bytes", bodyCount)
        let isWhole = bodyCount == body.count
        if isWhole, PayloadRules.isJSONObject(body.span.rawBytes) {
            // Line ends occur only between the tokens of valid JSON.
            let oneLine = body.map { $0 == 0x0a || $0 == 0x0d || $0 == 0x09 ? 0x20 : $0 }
            line.addRaw(
                "payload",
                JSONLine.escapingControls(String(decoding: oneLine, as: UTF8.self)))
            return
        }
        line.addRaw("payload", "null")
        guard !body.isEmpty else { return }
        let digits = Array("0123456789abcdef".utf8)
        let hex = body.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        line.add("payload_hex", String(decoding: hex, as: UTF8.self))
    }
}

/// The conditions that a received request must meet in order to be selected.
struct ReceivedFilter: Sendable {
    var token: String?
    var topic: String?
    var status: UInt16?
    var reason: String?
    /// Header fields that the request must have, with their values.
    var headers: [(name: String, value: String)] = []

    func selects(_ request: ReceivedRequest) -> Bool {
        if let token, request.token != token { return false }
        if let status, request.response.status != status { return false }
        if let reason, request.response.reason?.text != reason { return false }
        if let topic, request.topic != topic { return false }
        return headers.allSatisfy { request.value($0.name) == $0.value }
    }
}
