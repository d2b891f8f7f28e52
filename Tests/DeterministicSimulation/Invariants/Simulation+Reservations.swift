/// No row is sent before its reservation would survive a power cut. The synced part of a process's
/// segments is read by docs/ledger-format.md, not with the ledger's own code.
extension Simulation {
    /// What is known about a segment's reservations.
    struct Reservations {
        /// Number of bytes that were read, in whole blocks.
        var readCount = 32
        var rows: [Range<Int>] = []
    }

    /// Reads the reservations in the part of a reactor's segment that was synced since the last
    /// call.
    func noteReservations(of reactor: SimulatedReactor) {
        let segment = segments[process.epoch - 1][reactor.index]
        let bytes = segment.content
        func number(_ offset: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        while reactor.reservations.readCount + 8 <= segment.syncedCount {
            let start = reactor.reservations.readCount
            let end = start + 8 + 16 * number(start + 4, 2)
            guard number(start + 6, 2) == 0xb10c else {
                return fail("no block begins at \(start) of the segment")
            }
            guard end <= segment.syncedCount else { return }
            var offset = start + 8
            while offset < end {
                switch bytes[offset + 7] >> 4 {
                case 3:
                    let first = number(offset, 5)
                    reactor.reservations.rows.append(first..<(first + number(offset + 8, 4)))
                    offset += 48
                case 2:
                    // Flags, then the byte counts of token and reason. A time has eight bytes.
                    let time = number(offset + 11, 1) & 1 == 1 ? 8 : 0
                    let trailing = time + number(offset + 14, 1) + number(offset + 15, 1)
                    offset += 16 + (trailing + 15) / 16 * 16
                case 7:
                    let (first, count) = (number(offset, 5), number(offset + 8, 4))
                    let released = Set(
                        (0..<count).filter { bytes[offset + 16 + $0 / 8] >> ($0 % 8) & 1 == 1 })
                    // The rest of the previous reservation.
                    reactor.reservations.rows.removeLast()
                    reactor.reservations.rows += (0..<count).filter { !released.contains($0) }
                        .map { first + $0..<first + $0 + 1 }
                    offset += 16 + (count + 127) / 128 * 16
                default:
                    offset += 16
                }
            }
            reactor.reservations.readCount = end
        }
    }

    func checkReserved(_ row: Int, link id: Int) {
        guard row >= 0 else { return }
        // A row that one reactor reserved may be sent by another reactor.
        let isReserved = process.reactors.contains { reactor in
            reactor.reservations.rows.contains { $0.contains(row) }
        }
        if !isReserved {
            fail("row \(row) goes out on link \(id), and its reservation is not safe")
        }
    }
}
