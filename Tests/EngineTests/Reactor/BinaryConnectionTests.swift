import Testing

@testable import Engine

/// A queue of what is out on one connection to a gateway.
@Suite struct BinaryConnectionTests {
    @Test func `Identifiers count on, whatever was settled`() {
        var connection = BinaryConnection(capacity: 3)
        var next: UInt32 = 0
        var expected: UInt32 = 0
        for round in 0..<20 {
            while connection.room > 0 {
                next += 1
                let identifier = connection.append(100 + next)
                #expect(identifier == next)
            }
            let (count, isSent) = (connection.count, connection.isOldestSent)
            #expect(count == 3 && (!isSent || round > 0))
            connection.noteFlushed()
            var all: [RowTag] = []
            connection.forEach { all.append($0) }
            #expect(all == [98 + next, 99 + next, 100 + next])
            for _ in 0...(round % 3) {
                let (oldest, wasSent) = (connection.oldest, connection.isOldestSent)
                expected += 1
                let popped = connection.popOldest()
                #expect(oldest == 100 + expected && popped == oldest && wasSent)
            }
            let (first, following) = (connection.firstIdentifier, connection.nextIdentifier)
            #expect(first == expected + 1 && following == next + 1)
        }
        while connection.popOldest() != nil {}
        let (oldest, room) = (connection.oldest, connection.room)
        #expect(oldest == nil && room == 3)
    }

    @Test func `Only what was there when the buffer was empty is with the kernel`() {
        var connection = BinaryConnection(capacity: 4)
        _ = connection.append(1)
        connection.noteFlushed()
        _ = connection.append(2)
        let first = connection.isOldestSent
        _ = connection.popOldest()
        let second = connection.isOldestSent
        connection.noteFlushed()
        let flushed = connection.isOldestSent
        #expect(first && !second && flushed)
    }
}
