import BroadsideHTTP2
import Foundation
import Testing

/// Dates as servers send them.
struct HTTPDateTests {
    @Test func `HTTP dates over four centuries are read as Foundation does`() throws {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        for (form, end) in [
            ("EEE, dd MMM yyyy HH:mm:ss 'GMT'", 12_000_000_000),
            ("EEE MMM d HH:mm:ss yyyy", 12_000_000_000),
            ("EEEE, dd-MMM-yy HH:mm:ss 'GMT'", 3_155_760_000),
        ] {
            formatter.dateFormat = form
            for seconds in stride(from: 0, to: end, by: 7_654_321) {
                let text = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
                #expect(HTTPDate.parse(Array(text.utf8).span.bytes) == UInt64(seconds), "\(text)")
            }
        }
        #expect(
            HTTPDate.parse(Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8).span.bytes) == 784_111_777)
    }

    @Test(arguments: [
        "", "Sun Nov  6 08:49:37", "Sun Nov  6 08:49:37 +00 1994", "Sunday, 06-Nov-94 08:49:37",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
    ])
    func `Text that is not an HTTP date is not read`(_ text: String) {
        #expect(HTTPDate.parse(Array(text.utf8).span.bytes) == nil)
    }
}
