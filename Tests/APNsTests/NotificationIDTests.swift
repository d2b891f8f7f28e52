import BroadsideAPNs
import Testing

@Suite struct NotificationIDTests {
    func text(_ id: NotificationID) -> String {
        String(decoding: written(36) { id.write(into: &$0) }, as: UTF8.self)
    }

    func parsed(_ text: String) -> NotificationID? {
        let bytes = Array(text.utf8)
        return NotificationID(parsing: bytes.span.bytes)
    }

    @Test func `An ID holds the campaign and the row at fixed digits of a version 8 UUID`() {
        let id = NotificationID(campaign: 0x0123_4567_89ab_cdef, row: 0xfedc_ba98_7654)
        #expect(text(id) == "01234567-89ab-8cde-bc00-fedcba987654")
        #expect(text(NotificationID(campaign: 0, row: 0)) == "00000000-0000-8000-8000-000000000000")
        #expect(
            text(NotificationID(campaign: .max, row: (1 << 48) - 1))
                == "ffffffff-ffff-8fff-bc00-ffffffffffff")
    }

    @Test func `An ID in lower or upper case is parsed into the campaign and row it was made from`()
    {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<2_000 {
            let id = NotificationID(
                campaign: random.next(),
                row: random.next() >> UInt64.random(in: 16...63, using: &random))
            #expect(parsed(text(id)) == id)
            #expect(parsed(text(id).uppercased()) == id)
            let digits = [UInt8](unsafeUninitializedCapacity: 12) { buffer, count in
                NotificationID.writeRowDigits(id.row, into: buffer.baseAddress!)
                count = 12
            }
            #expect(String(decoding: digits, as: UTF8.self) == text(id).suffix(12))
        }
    }

    @Test func `Each of 1,024 parts gives the same row another ID`() {
        let id = NotificationID(campaign: 0x0123_4567_89ab_cdef, part: 1, row: 0xfedc_ba98_7654)
        #expect(text(id) == "01234567-89ab-8cde-bc01-fedcba987654")
        let last = NotificationID(campaign: .max, part: NotificationID.partMax, row: 0)
        #expect(text(last) == "ffffffff-ffff-8fff-bfff-000000000000")
        var random = SeededGenerator(seed: 4)
        var texts: Set<String> = []
        for part in 0...NotificationID.partMax {
            let id = NotificationID(campaign: 7, part: part, row: random.next() >> 16)
            #expect(parsed(text(id)) == id)
            texts.insert(text(NotificationID(campaign: 7, part: part, row: 5)))
        }
        #expect(texts.count == 1024)
    }

    @Test func `Text that is not an ID of a campaign is not parsed`() {
        for text in [
            "", "eabeae54-14a8-11e5-b60b-1697f925ec7b", "01234567-89ab-8cde-3c00-fedcba987654",
            "01234567-89ab-7cde-bc00-fedcba987654", "0123456789ab-8cde-bc00-fedcba987654-",
            "01234567-89ab-8cde-bc00-fedcba98765g", "01234567-89ab-8cde-bc00-fedcba9876541",
        ] {
            #expect(parsed(text) == nil, "\(text)")
        }
    }
}
