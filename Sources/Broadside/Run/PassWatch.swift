import BroadsideSupport

/// The watches and times that the main thread checks while a pass waits and sends.
struct PassWatch {
    let credential: CredentialWatch
    let ledger: LedgerWatch
    /// Time from which the run sends no new requests; nil: none.
    let deadline: RunDeadline?
    /// Time at which quiet hours begin in a zone of the pass, milliseconds since 1970; nil: none.
    let quietAt: UInt64?
    /// Time at which the next wave is due; nil: never.
    let nextWaveAt: UInt64?

    /// Milliseconds until the next check: at most 100. One is made when requests must end.
    func wait(from now: Now) -> Int {
        let quiet = quietAt.map { $0 - min($0, now.wallMilliseconds) }
        let waits = [deadline?.milliseconds(from: now), quiet].compactMap { $0 }.filter { $0 > 0 }
        return Int(min(100, waits.min() ?? .max))
    }
}
