import Campaign
import Ring
import Testing

@testable import Broadside

/// How an endpoint's addresses are paused, probed and taken up again.
@Suite struct AddressBookTests {
    private var random = SplitMix64(seed: 1)

    private func book(_ count: Int = 1) -> AddressBook {
        var book = AddressBook()
        book.update(
            (0..<count).map { SocketAddress.v4(0x0a00_0001 + UInt32($0), port: 443) }, now: 0)
        return book
    }

    @Test mutating func `A pause doubles from one second to sixty, less a jitter`() {
        var book = book()
        var now: UInt64 = second
        for doubling in 0..<9 {
            book.failed(0, now: now, retryAfter: nil, lasting: nil, random: &random)
            let pause = book.entries[0].notBefore - now
            let whole = min(second << UInt64(doubling), 60 * second)
            #expect(pause <= whole && pause > whole / 4 * 3 - 1)
            #expect(book.pick(for: 0, now: now) == nil && book.nextAttempt == now + pause)
            now += pause
            #expect(book.pick(for: 0, now: now) == 0)
            book.ended(0)
        }
    }

    @Test mutating func `Retry-After wins over the doubling, both ways`() {
        var book = book()
        for step in 0..<6 {
            let now = UInt64(step) * 100 * second
            book.failed(0, now: now, retryAfter: nil, lasting: nil, random: &random)
        }
        book.failed(0, now: 900 * second, retryAfter: 2 * second, lasting: nil, random: &random)
        let pause = book.entries[0].notBefore - 900 * second
        #expect(pause >= 2 * second && pause <= 5 * second / 2)
        // The answers of one trouble are one failure, however many: the pause only grows.
        let failures = book.entries[0].failures
        for _ in 0..<50 {
            book.failed(
                0, now: 901 * second, retryAfter: 3 * second, lasting: nil, random: &random)
        }
        #expect(book.entries[0].failures == failures)
        #expect(book.entries[0].notBefore == 904 * second)
    }

    @Test mutating func `An address that failed is probed by one connection`() {
        var book = book(2)
        book.failed(0, now: 0, retryAfter: nil, lasting: nil, random: &random)
        book.failed(1, now: 0, retryAfter: nil, lasting: nil, random: &random)
        let now = 2 * second
        let picked = [0, 1, 2].map { book.pick(for: $0, now: now) }
        #expect(Set(picked[..<2]) == [0, 1] && picked[2] == nil && book.nextAttempt == nil)
        // A probe that ends makes room for another; an answer makes room for all.
        book.ended(1)
        #expect(book.pick(for: 5, now: now) == picked[1])
        book.succeeded(picked[0]!, now: now)
        #expect(book.entries[picked[0]!].failures == 0)
        #expect([6, 7].map { book.pick(for: $0, now: now) } == [picked[0], picked[0]])
    }

    @Test func `A name that has others with each look-up does not fill the book`() {
        var book = AddressBook()
        func addresses(_ numbers: Range<UInt32>) -> [SocketAddress] {
            numbers.map { .v4(0x0a00_0000 + $0, port: 443) }
        }
        book.update(addresses(0..<200), now: 0)
        book.update(addresses(200..<400), now: 0, inUse: [0])
        #expect(book.entries.count == 256)
        // Those that the name has are there, but for what connections go to.
        #expect(Set(book.entries.map(\.address)).isSuperset(of: addresses(200..<400)))
        #expect(book.entries[0].address == addresses(0..<1)[0])
        #expect(book.entries[0].notBefore == .max && book.entries[1].notBefore == 0)
        // More than there is room for: the first ones do.
        book.update(addresses(1000..<2000), now: 0)
        #expect(book.entries.count == 256)
        #expect(book.entries.allSatisfy { $0.notBefore == 0 })
    }

    @Test func `At most ten connections begin within any second`() {
        let churn = ConnectionChurn()
        for index in 0..<10 { #expect(churn.take(now: UInt64(index) * 10 * millisecond) == nil) }
        #expect(churn.take(now: 500 * millisecond) == second)
        #expect(churn.take(now: second) == nil)
        #expect(churn.take(now: second) == second + 10 * millisecond)
        churn.giveBack(now: second)
        #expect(churn.take(now: second + millisecond) == nil)
    }
}
