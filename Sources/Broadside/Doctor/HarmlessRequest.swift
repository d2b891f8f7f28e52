import BroadsideAPNs
import BroadsideSupport

/// A request of `doctor --survey`. No device has its device token, so no device can receive
/// anything, however the server handles the request.
struct HarmlessRequest {
    /// Authorization of a request.
    enum Authorization {
        case credential
        /// A provider token with a shifted issue time.
        case shifted(seconds: Int64)
        case text(String)
        case none
    }

    /// Name of the request in the file of a survey.
    let name: String
    /// How the request differs from the usual one.
    let purpose: String
    let request: SingleRequest
    let authorization: Authorization

    /// A token of the usual length that belongs to no device.
    static let impossibleToken = String(repeating: "0", count: 64)
    /// The `apns-id` of requests that send one.
    static let identifier = "eabeae54-14a8-11e5-b60b-1697f925ec7b"

    /// The changes to the usual request.
    private struct Change {
        var method = "POST"
        var path = "/3/device/\(HarmlessRequest.impossibleToken)"
        /// Header fields that are added, or that replace the usual ones.
        var fields: [(name: String, value: String)] = []
        /// Usual header fields that are omitted.
        var without: Set<String> = []
        var body = Array("{\"aps\":{}}".utf8)
        var authorization = Authorization.credential
    }

    private init(
        _ name: String, _ purpose: String, topic: String?,
        _ change: (inout Change) -> Void = { _ in }
    ) {
        var changed = Change()
        change(&changed)
        var fields: [(name: String, value: String)] = []
        if let topic { fields.append(("apns-topic", topic)) }
        fields.append(("apns-push-type", "alert"))
        fields.removeAll { field in
            changed.without.contains(field.name)
                || changed.fields.contains { $0.name == field.name }
        }
        self.name = name
        self.purpose = purpose
        request = SingleRequest(
            method: changed.method, path: changed.path, fields: fields + changed.fields,
            body: changed.body)
        authorization = changed.authorization
    }

    /// A payload of exactly this many bytes.
    private static func payload(count: Int) -> [UInt8] {
        let (start, end) = ("{\"aps\":{},\"x\":\"", "\"}")
        let room = count - start.utf8.count - end.utf8.count
        return Array((start + String(repeating: "x", count: room) + end).utf8)
    }

    /// All requests, in the order in which they are sent. Requests that APNs may count as a change
    /// of the provider token come last.
    ///
    /// - Parameters:
    ///   - topic: Topic of the credential; nil: the certificate's only topic.
    ///   - signs: Whether this process signs provider tokens.
    ///   - usesTokens: Whether the credential is a provider token.
    static func all(topic: String?, signs: Bool, usesTokens: Bool) -> [HarmlessRequest] {
        var all: [HarmlessRequest] = []
        func add(_ name: String, _ purpose: String, _ change: (inout Change) -> Void = { _ in }) {
            all.append(HarmlessRequest(name, purpose, topic: topic, change))
        }
        func field(_ name: String, _ purpose: String, _ field: String, _ value: String) {
            add(name, purpose) { $0.fields = [(field, value)] }
        }
        add("impossible-token", "a valid request, to a token of zeros")
        addPaths(add)
        addMethods(add)
        add("topic-missing", "without apns-topic") { $0.without = ["apns-topic"] }
        field("topic-empty", "an empty apns-topic", "apns-topic", "")
        field("topic-foreign", "an unknown topic", "apns-topic", "invalid.broadside.survey")
        field("topic-malformed", "a topic with a space", "apns-topic", "not a topic")
        add("topic-twice", "apns-topic twice") {
            $0.fields = [("apns-topic", topic ?? ""), ("apns-topic", topic ?? "")]
        }
        add("push-type-missing", "without apns-push-type") { $0.without = ["apns-push-type"] }
        field("push-type-unknown", "an unknown push type", "apns-push-type", "survey")
        field("push-type-empty", "an empty push type", "apns-push-type", "")
        field("push-type-capitals", "a push type in capitals", "apns-push-type", "ALERT")
        field(
            "push-type-of-other-topic", "VoIP for a topic without .voip", "apns-push-type", "voip")
        add("background-at-once", "a background push with priority 10") {
            $0.fields = [("apns-push-type", "background"), ("apns-priority", "10")]
        }
        field("priority-3", "priority 3", "apns-priority", "3")
        field("priority-empty", "an empty priority", "apns-priority", "")
        field("priority-word", "priority high", "apns-priority", "high")
        field("priority-010", "priority 010", "apns-priority", "010")
        field("expiration-word", "expiration tomorrow", "apns-expiration", "tomorrow")
        field("expiration-negative", "expiration -1", "apns-expiration", "-1")
        field("expiration-fraction", "expiration 1.5", "apns-expiration", "1.5")
        field("expiration-past", "expiration 1", "apns-expiration", "1")
        field(
            "expiration-20-digits", "an expiration of 20 digits", "apns-expiration",
            "99999999999999999999")
        field("id-lower-case", "an apns-id in lower case", "apns-id", identifier)
        field("id-upper-case", "an apns-id in upper case", "apns-id", identifier.uppercased())
        field("id-malformed", "an apns-id that is not a UUID", "apns-id", "1")
        field(
            "id-without-hyphens", "an apns-id without hyphens", "apns-id",
            identifier.filter { $0 != "-" })
        field(
            "collapse-id-64", "a collapse identifier of 64 bytes", "apns-collapse-id",
            String(repeating: "c", count: 64))
        field(
            "collapse-id-65", "a collapse identifier of 65 bytes", "apns-collapse-id",
            String(repeating: "c", count: 65))
        field("collapse-id-empty", "an empty collapse identifier", "apns-collapse-id", "")
        field("field-unknown", "an unknown header field", "x-broadside-survey", "1")
        field("field-unknown-apns", "an unknown field of apns-", "apns-broadside-survey", "1")
        addPayloads(add)
        if usesTokens { addCredentials(add, signs: signs) }
        assert(Set(all.map(\.name)).count == all.count, "a name is one request's")
        return all
    }

    private typealias Add = (String, String, (inout Change) -> Void) -> Void

    private static func addPaths(_ add: Add) {
        for (name, purpose, path) in [
            ("token-short", "a token of one byte", "/3/device/00"),
            ("token-odd", "a token with an odd number of digits", "/3/device/000"),
            (
                "token-not-hexadecimal", "a token that is not hexadecimal",
                "/3/device/" + String(repeating: "z", count: 64)
            ),
            (
                "token-100-bytes", "a token of 100 bytes",
                "/3/device/" + String(repeating: "0", count: 200)
            ),
            (
                "token-101-bytes", "a token of 101 bytes",
                "/3/device/" + String(repeating: "0", count: 202)
            ),
            ("token-missing", "a path without a token", "/3/device/"),
            ("path-without-slash", "the path /3/device", "/3/device"),
            ("path-wrong", "the path /3/devices/TOKEN", "/3/devices/\(impossibleToken)"),
            ("path-root", "the path /", "/"),
            ("path-version-2", "the path /2/device/TOKEN", "/2/device/\(impossibleToken)"),
            ("path-slash-behind", "a slash behind the token", "/3/device/\(impossibleToken)/"),
            ("path-query", "a query behind the token", "/3/device/\(impossibleToken)?a=1"),
        ] { add(name, purpose) { $0.path = path } }
    }

    private static func addMethods(_ add: Add) {
        for method in ["GET", "PUT", "DELETE", "HEAD"] {
            add("method-\(method.lowercased())", "the method \(method)") { change in
                change.method = method
                if method == "GET" || method == "HEAD" { change.body = [] }
            }
        }
    }

    private static func addPayloads(_ add: Add) {
        let most = PayloadRules.maximumCount
        let cases: [(name: String, purpose: String, body: [UInt8])] = [
            ("payload-missing", "no body", []),
            ("payload-\(most)", "a payload of \(most) bytes", payload(count: most)),
            ("payload-\(most + 1)", "a payload of \(most + 1) bytes", payload(count: most + 1)),
            ("payload-10000", "a payload of 10,000 bytes", payload(count: 10_000)),
            ("payload-not-json", "a body that is not JSON", Array("hello".utf8)),
            ("payload-array", "a JSON array", Array("[]".utf8)),
            ("payload-empty-dictionary", "an empty dictionary", Array("{}".utf8)),
            ("payload-without-aps", "a dictionary without aps", Array("{\"a\":1}".utf8)),
        ]
        for (name, purpose, body) in cases { add(name, purpose) { $0.body = body } }
    }

    private static func addCredentials(_ add: Add, signs: Bool) {
        for (name, purpose, authorization) in [
            ("authorization-missing", "no provider token", Authorization.none),
            ("authorization-empty", "an empty authorization", .text("")),
            ("authorization-basic", "another scheme", .text("basic YTpi")),
            ("authorization-malformed", "a text that is not a token", .text("bearer survey")),
        ] { add(name, purpose) { $0.authorization = authorization } }
        guard signs else { return }
        add("authorization-expired", "a provider token issued two hours ago") {
            $0.authorization = .shifted(seconds: -7200)
        }
        add("authorization-early", "a provider token whose issue time is two hours in the future") {
            $0.authorization = .shifted(seconds: 7200)
        }
    }
}
