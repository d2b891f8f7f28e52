import BroadsidePolicy
import BroadsideRing
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// How an endpoint's addresses are paused, probed and taken up again.
@Suite struct AddressBookTests {
    private var random = SplitMix64(seed: 1)

    private func book(_ count: UInt32 = 1) -> AddressBook {
        var book = AddressBook(
            health: AddressHealth(), lossy: LossyAddresses(), reactor: 0)
        book.update(addresses(0..<count), now: 0) { _ in false }
        return book
    }

    private func addresses(_ numbers: Range<UInt32>) -> [SocketAddress] {
        numbers.map { .v4(0x0a00_0001 + $0, port: 443) }
    }

    @Test mutating func `A pause doubles from one second to sixty, less jitter`() {
        var book = book()
        var now: UInt64 = second
        for doubling in 0..<9 {
            book.failed(0, now: now, retryAfter: nil, lasting: nil, random: &random)
            let pause = book.state(0).notBefore - now
            let whole = min(second << UInt64(doubling), 60 * second)
            #expect(pause <= whole && pause > whole / 4 * 3 - 1)
            #expect(book.pick(for: 0, now: now) == nil && book.nextAttempt == now + pause)
            now += pause
            #expect(book.pick(for: 0, now: now) == 0)
            book.releaseTrial(0)
        }
    }

    @Test mutating func `Retry-After replaces the doubled pause, whether longer or shorter`() {
        var book = book()
        for step in 0..<6 {
            let now = UInt64(step) * 100 * second
            book.failed(0, now: now, retryAfter: nil, lasting: nil, random: &random)
        }
        book.failed(0, now: 900 * second, retryAfter: 2 * second, lasting: nil, random: &random)
        let pause = book.state(0).notBefore - 900 * second
        #expect(pause >= 2 * second && pause <= 5 * second / 2)
        // The answers of one trouble are one failure, however many: the pause only grows.
        let failures = book.state(0).failures
        for _ in 0..<50 {
            book.failed(
                0, now: 901 * second, retryAfter: 3 * second, lasting: nil, random: &random)
        }
        #expect(book.state(0).failures == failures)
        #expect(book.state(0).notBefore == 904 * second)
    }

    @Test mutating func `An address that failed is tried by one connection`() {
        var book = book(2)
        book.failed(0, now: 0, retryAfter: nil, lasting: nil, random: &random)
        book.failed(1, now: 0, retryAfter: nil, lasting: nil, random: &random)
        let now = 2 * second
        let picked = [0, 1, 2].map { book.pick(for: $0, now: now) }
        #expect(Set(picked[..<2]) == [0, 1] && picked[2] == nil && book.nextAttempt == nil)
        // A probe that ends makes room for another; an answer makes room for all.
        book.releaseTrial(1)
        #expect(book.pick(for: 5, now: now) == picked[1])
        book.succeeded(picked[0]!, slot: 0, now: now)
        #expect(book.state(picked[0]!).failures == 0)
        #expect([6, 7].map { book.pick(for: $0, now: now) } == [picked[0], picked[0]])
    }

    @Test func `Reactors with one connection each use all addresses`() {
        let health = AddressHealth()
        let first = (0..<4).map { reactor in
            var book = AddressBook(health: health, lossy: LossyAddresses(), reactor: reactor)
            book.update(addresses(0..<4), now: 0) { _ in false }
            return book.pick(for: 0, now: 0)
        }
        #expect(Set(first) == [0, 1, 2, 3])
    }

    @Test mutating func `An address that is resolved again keeps its pause`() {
        var book = book(2)
        for _ in 0..<4 {
            book.failed(
                0, now: book.state(0).notBefore, retryAfter: nil, lasting: .init(.tls, "no"),
                random: &random)
        }
        let (before, pausedUntil) = (book.state(0).failures, book.state(0).notBefore)
        // Gone: not tried, not waited for, and no reason to give up.
        book.update(addresses(1..<2), now: second) { _ in false }
        #expect(book.pick(for: 0, now: 3600 * second) == 1 && book.troubledCount == 0)
        #expect(book.lastingFailure == nil)
        book.failed(
            1, now: 3600 * second, retryAfter: nil, lasting: .init(.tls, "no"), random: &random)
        #expect(book.lastingFailure?.message == "no")
        // Fails once more while it is away: a connection to it may still be there.
        book.failed(0, now: pausedUntil - 1, retryAfter: nil, lasting: nil, random: &random)
        book.update(addresses(0..<2), now: 2 * second) { _ in false }
        #expect(book.state(0).failures == before && book.state(0).notBefore == pausedUntil)
        #expect(book.pick(for: 0, now: pausedUntil - 1) == nil)
        #expect(book.nextAttempt == pausedUntil && book.pick(for: 0, now: pausedUntil) == 0)
    }

    @Test
    mutating func `Remembered addresses are limited, and those in use or in trouble are kept`() {
        let limit = UInt32(AddressBook.entriesLimit)
        var book = book(limit)
        // Number 7 is paused, connections go to 3 and 5.
        book.failed(7, now: second, retryAfter: 90 * second, lasting: nil, random: &random)
        var seen = Set<SocketAddress>()
        for round in 1...20 {
            let answer = addresses((UInt32(round) * limit)..<(UInt32(round) * limit + 10))
            book.update(answer, now: UInt64(round) * second) { $0 == 3 || $0 == 5 }
            #expect(book.entries.count == AddressBook.entriesLimit)
            for number in [3, 5, 7] {
                #expect(addresses(0..<limit)[number] == book.entries[number].address)
            }
            for _ in 0..<10 {
                guard let index = book.pick(for: 0, now: UInt64(round) * second) else { break }
                seen.insert(book.entries[index].address)
            }
            #expect(answer.allSatisfy(seen.contains), "those that the name has are tried")
        }
        #expect(seen.count == 200)
        // A name that has more at once: no more than so many, and those in use besides.
        book.update(addresses(100_000..<110_000), now: 60 * second) { $0 < 20 }
        #expect(book.entries.count == AddressBook.entriesLimit + 20)
    }

    @Test func `At most ten connections begin within any second`() {
        let connectRate = ConnectRateLimiter()
        for index in 0..<10 {
            #expect(connectRate.reserve(now: UInt64(index) * 10 * millisecond) == nil)
        }
        #expect(connectRate.reserve(now: 500 * millisecond) == second)
        #expect(connectRate.reserve(now: second) == nil)
        #expect(connectRate.reserve(now: second) == second + 10 * millisecond)
        connectRate.cancelReservation(now: second)
        #expect(connectRate.reserve(now: second + millisecond) == nil)
    }
}
