import BroadsideAPNs
import Foundation
import Testing

@testable import BroadsideSimulator

@Suite struct ReceivedLogTests {
    private func request(
        _ token: String, status: UInt16 = 200, topic: String = "a.b", body: Int = 2
    ) -> ReceivedRequest {
        var request = ReceivedRequest()
        request.token = token
        request.response = Response(status: status, reason: nil)
        request.fields = [
            .init(name: ":path", value: "/3/device/\(token)"),
            .init(name: "apns-topic", value: topic),
        ]
        let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: body)
        bytes.withBytes { request.add(body: $0) }
        return request
    }

    private func numbers(_ log: ReceivedLog, _ filter: ReceivedFilter = .init()) -> [UInt64] {
        log.select(after: 0, limit: .max, filter).rows.map(\.number)
    }

    @Test func `Above the limit the oldest requests go, and are counted`() {
        let log = ReceivedLog(limit: 2000)
        for number in 1...5000 { log.append(request("\(number)")) }
        let selection = log.select(after: 0, limit: 10, .init())
        #expect(selection.rows.map(\.number) == Array(3001...3010))
        #expect(selection.rows.map(\.token) == (3001...3010).map { "\($0)" })
        #expect(selection.total == 5000 && selection.dropped == 3000 && selection.hasMore)
        #expect(log.select(after: 4999, limit: 10, .init()).rows.map(\.number) == [5000])
        #expect(!log.select(after: 4999, limit: 10, .init()).hasMore)
        var (start, mark) = (log.mark(0), log.mark(4990))
        #expect(log.count(after: &start, .init()) == 2000)
        #expect(log.count(after: &mark, .init()) == 10 && mark.number == 5000)
        log.removeAll()
        #expect(numbers(log).isEmpty)
        log.append(request("1"))
        #expect(numbers(log) == [1])
    }

    @Test func `Requests go as well when their bytes are above the limit`() {
        let log = ReceivedLog(limit: 100_000)
        let one = request("00", body: 8192).byteCount
        let room = ReceivedLog.bytesLimit / one
        for _ in 0..<room + 50 { log.append(request("00", body: 8192)) }
        let selection = log.select(after: 0, limit: .max, .init())
        #expect(selection.rows.count == room && selection.dropped == 50)
    }

    @Test func `A filter selects by token, topic, status, reason and header field`() {
        let log = ReceivedLog(limit: 10)
        log.append(request("aa"))
        log.append(request("bb", status: 410))
        log.append(request("aa", topic: "c.d"))
        #expect(numbers(log, .init(token: "aa")) == [1, 3])
        #expect(numbers(log, .init(topic: "a.b")) == [1, 2])
        #expect(numbers(log, .init(token: "aa", topic: "a.b")) == [1])
        #expect(numbers(log, .init(status: 410)) == [2])
        #expect(numbers(log, .init(reason: "Unregistered")).isEmpty)
        #expect(numbers(log, .init(headers: [("apns-topic", "c.d")])) == [3])
        var mark = log.mark(1)
        #expect(log.count(after: &mark, .init(token: "aa")) == 1 && mark.number == 3)
    }

    @Test func `Requests up to a mark count only after a reset, even if they are still to come`() {
        let log = ReceivedLog(limit: 10)
        log.append(request("aa"))
        var mark = log.mark(3)
        for _ in 2...3 {
            #expect(log.count(after: &mark, .init()) == 0)
            log.append(request("aa"))
        }
        #expect(log.count(after: &mark, .init()) == 0 && mark.number == 3)
        log.append(request("aa"))
        #expect(log.count(after: &mark, .init()) == 1 && mark.number == 4)
        log.removeAll()
        for _ in 1...5 { log.append(request("aa")) }
        #expect(log.count(after: &mark, .init()) == 5 && mark.number == 5)
    }

    /// Read by Foundation's parser.
    @Test func `A request's JSON has payload or bytes, and never the provider token`() throws {
        func object(_ body: [UInt8], _ authorization: String) throws -> [String: Any] {
            var request = ReceivedRequest()
            for (name, value) in [
                (":method", "POST"), ("authorization", authorization), ("x-a", "1\u{202e}"),
                ("x-a", "2"),
            ] {
                Array(name.utf8).withBytes { name in
                    Array(value.utf8).withBytes { request.add(name: name, value: $0) }
                }
            }
            body.withBytes { request.add(body: $0) }
            let text = request.json
            #expect(!text.contains("\n") && !text.contains("secret") && !text.contains("\u{202e}"))
            return try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        let whole = try object(Array("{\"aps\":\n{\"badge\":1e2}}\r\n".utf8), "bearer secret")
        #expect((whole["payload"] as? [String: [String: Int]]) == ["aps": ["badge": 100]])
        #expect(whole["payload_hex"] == nil && whole["payload_bytes"] as? Int == 24)
        let headers = try #require(whole["headers"] as? [String: String])
        #expect(headers == ["authorization": "…", "x-a": "1\u{202e}, 2"])
        #expect(whole["provider_token"] is NSNull && whole["status"] is NSNull)
        for body in [[0x1f, 0x8b, 0], Array("[]".utf8), Array("{\"a\":".utf8), [UInt8(0xff)]] {
            let other = try object(body, "basic secret")
            #expect(other["payload"] is NSNull)
            let hex = try #require(other["payload_hex"] as? String)
            #expect(hexBytes(hex) == body)
        }
        // Cut: no JSON any more.
        let long = try object([UInt8](repeating: 0x20, count: 9000), "")
        #expect(long["payload_bytes"] as? Int == 9000)
        #expect((long["payload_hex"] as? String)?.count == 2 * ReceivedRequest.bodyLimit)
    }
}
