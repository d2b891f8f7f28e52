import Broadside
import BroadsideAPNs
import BroadsideSupport

extension Simulation {
    /// A request whose headers were checked.
    struct Request {
        var row: Int
        var token: [UInt8]
        var authorization: [UInt8]?

        /// Time at which the provider token was made, seconds since 1970. It is the token's value.
        var tokenIssued: UInt64? {
            authorization.flatMap { UInt64(String(decoding: $0.dropFirst(7), as: UTF8.self)) }
        }
    }

    /// Checks a request's headers: they are those of the campaign, and the token in the path is the
    /// row's.
    func checkHeaders(_ headers: [(name: [UInt8], value: [UInt8])], link: Int) -> Request? {
        func value(_ name: String) -> [UInt8]? {
            headers.first { $0.name == Array(name.utf8) }?.value
        }
        guard let text = value("apns-id"),
            let id = text.withUnsafeBytes({ NotificationID(parsing: RawSpan(_unsafeBytes: $0)) }),
            id.campaign == plan.campaign, id.part == plan.part?.index ?? 0,
            id.row < plan.list.tokens.count
        else {
            fail("a request's apns-id is not a row's: \(Self.text(value("apns-id") ?? []))")
            return nil
        }
        let row = Int(id.row)
        if let limit = plan.limit(epoch: links[link].epoch), id.row >= limit {
            fail("row \(row) is sent, and the limit is \(limit)")
        }
        checkTime(ofRow: row, link: link)
        if plan.isHeldOut(row) { fail("row \(row) is sent, and it is held out") }
        guard let token = plan.list.tokens[row] else {
            fail("row \(row), which is not a token, was sent")
            return nil
        }
        let authorization = value("authorization")
        let expected = expectedHeaders(token: token, id: text, authorization: authorization)
        if headers.count != expected.count
            || !zip(headers, expected).allSatisfy({ $0.name == $1.name && $0.value == $1.value })
        {
            let found = headers.map { "\(Self.text($0.name)): \(Self.text($0.value))" }
            fail("row \(row) has other headers: \(found.joined(separator: ", "))")
        }
        check(authorization: authorization, row: row, link: link)
        checkRepetition(row: row, link: link)
        note { "link \(link): row \(row) reaches the server" }
        return Request(row: row, token: token, authorization: authorization)
    }

    private func expectedHeaders(
        token: [UInt8], id: [UInt8], authorization: [UInt8]?
    ) -> [(name: [UInt8], value: [UInt8])] {
        var fields: [(name: [UInt8], value: [UInt8])] = []
        func add(_ name: String, _ value: [UInt8]?) {
            if let value { fields.append((Array(name.utf8), value)) }
        }
        add(":method", Array("POST".utf8))
        add(":scheme", Array("https".utf8))
        add(":path", Array("/3/device/".utf8) + token)
        add(":authority", SimulationPlan.authority)
        add("authorization", authorization)
        add("apns-topic", plan.topic)
        add("apns-push-type", SimulationPlan.pushType)
        add("apns-id", id)
        add("apns-expiration", plan.expiration)
        add("apns-collapse-id", plan.collapseIdentifier)
        add("apns-priority", SimulationPlan.priority)
        return fields
    }

    /// A provider token must be young when the request leaves the client. The time in the network
    /// does not count.
    private func check(authorization: [UInt8]?, row: Int, link: Int) {
        guard let authorization else {
            if plan.usesProviderToken { fail("row \(row) has no provider token") }
            return
        }
        let issued = UInt64(Self.text(Array(authorization.dropFirst(7)))) ?? 0
        let sentAt = (wallStart + links[link].arrivingSentAt / millisecond) / 1000
        let age = sentAt - min(issued, sentAt)
        // Its age was below 55 minutes at the start of the iteration. The request was sent moments
        // later.
        let isRight = issued % 1800 == 0 && issued <= sentAt && age <= 3300 + 1
        if !plan.usesProviderToken || !isRight {
            fail("row \(row) has the provider token \(Self.text(authorization)), \(age) s old")
        }
    }

    /// A row that an earlier process settled is not sent again.
    func checkRepetition(row: Int, link: Int) {
        guard links[link].epoch == process.epoch else { return }
        let state = process.statesAtStart[row]
        if state.isSettled, !process.reopens(row: row) {
            fail("row \(row) was sent although the ledger says \(state.name)")
        }
        if state == .inDoubt, plan.onLost == .record, !process.reopensUnknown {
            fail("row \(row) was sent although it is in doubt")
        }
    }

    static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
