import BroadsideRows

@testable import BroadsideEngine

/// One connection's session without a reactor: rows that a test makes, records that it looks at, bytes
/// that it has the server say.
struct SessionBench: ~Copyable {
    var session: ProtocolSession
    var writer: RequestWriter
    var slab = RowSlab(capacity: 64)
    let settings: ReactorSettings

    init(_ configure: (inout ReactorSettings) -> Void = { _ in }) {
        var settings = ScriptedRun.settings
        configure(&settings)
        self.settings = settings
        session = ProtocolSession(ProtocolSession.Configuration(settings))
        writer = RequestWriter(settings: settings, layout: .lines)
        writer.use((nil, 1))
    }

    /// Another connection of the same run.
    mutating func reconnect() {
        session = ProtocolSession(ProtocolSession.Configuration(settings))
    }

    /// Makes rows of the list, from row 0 on.
    mutating func makeRows(_ count: Int) -> [RowTag] {
        var tags: [RowTag] = []
        for row in 0..<count {
            let tag = slab.take()
            let token = Array(ScriptedRun.token(row).utf8)
            slab.token(tag).copyMemory(from: token, byteCount: token.count)
            slab[tag].tokenCount = UInt8(token.count)
            slab[tag].row = UInt64(row)
            tags.append(tag)
        }
        return tags
    }

    /// Fills a record with the requests of as many of the rows as it holds, written at `time`.
    mutating func write(
        _ tags: [RowTag], at time: UInt64 = 1, limit: Int = recordPlaintextLimit
    ) -> (written: Int, bytes: [UInt8]) {
        writer.beginRecord(limit: limit)
        session.writeControl(with: &writer)
        session.writeContinuations(of: &slab, with: &writer, now: time)
        let room = session.room(for: writer)
        let most = min(room, session.prepare(&writer))
        var written = 0
        for tag in tags where written < most && writer.hasRoom {
            guard session.write(tag, of: slab, with: &writer) == .written else { break }
            slab[tag].sentNanoseconds = time
            written += 1
        }
        writer.finish()
        return (written, Array(writer.record))
    }

    /// What received bytes mean.
    mutating func outcomes(_ bytes: [UInt8], firstUnsent: UInt32 = .max) -> [SessionOutcome] {
        var outcomes: [SessionOutcome] = []
        var offset = 0
        while let outcome = session.nextOutcome(
            in: bytes.span.bytes, at: &offset, firstUnsent: firstUnsent)
        {
            outcomes.append(outcome)
        }
        return outcomes
    }

    /// What time has settled.
    mutating func expired(
        at now: UInt64, phaseSince: UInt64 = 0, waitingSince: UInt64? = nil
    ) -> [SessionOutcome] {
        let times = SessionTimes(
            now: now, phaseSince: phaseSince, waitingSince: waitingSince,
            isFlushed: waitingSince == nil, requestTimeout: settings.requestTimeout)
        var outcomes: [SessionOutcome] = []
        while let outcome = session.nextExpired(times, of: slab) {
            outcomes.append(outcome)
            // It is said as often as it is asked.
            if outcome == .unexplained { break }
        }
        return outcomes
    }
}
