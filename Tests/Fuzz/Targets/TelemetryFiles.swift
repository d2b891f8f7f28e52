import BroadsideLedgerFormat
import BroadsideObservability
import BroadsideRows

extension FuzzTarget {
    /// A ledger's telemetry: nothing that tells of the campaign traps, and what is read is written again the
    /// same.
    ///
    /// It is read as it is, and once more with the hash that fits: without that little but the hash is
    /// ever tried.
    static let telemetry = FuzzTarget(name: "telemetry") { bytes in
        if let telemetry = Telemetry(decoding: bytes) { check(telemetry) }
        if let telemetry = Telemetry(decoding: sealed(bytes)) { check(telemetry) }
    }

    /// An object with the hash that fits it, in the place of one that does not.
    private static func sealed(_ bytes: [UInt8]) -> [UInt8] {
        var members = bytes[...]
        while let last = members.last, last <= 0x20 { members.removeLast() }
        if members.last == UInt8(ascii: "}") { members.removeLast() }
        let mark = Array(#","hash":""#.utf8)
        let start = members.count - mark.count - 17
        if start >= 0, members.dropFirst(start).starts(with: mark) {
            members = members.prefix(start)
        }
        return Telemetry.sealed(members)
    }

    private static func check(_ telemetry: Telemetry) {
        let encoded = telemetry.encoded
        precondition(
            Telemetry(decoding: encoded)?.encoded == encoded, "telemetry changed by being written")
        // A ledger may have runs of which the telemetry says nothing.
        for count in [1, 2, 4] as [UInt32] {
            report(telemetry, runCount: count)
        }
        resume(telemetry)
    }

    /// What `ledger stats` and `report` tell.
    private static func report(_ telemetry: Telemetry, runCount: UInt32) {
        var manifest = Manifest(
            campaign: fuzzCampaign,
            identity: CampaignIdentity(
                listByteCount: nil, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 1, listPath: nil)
        for _ in 0..<runCount { _ = manifest.beginEpoch(atMilliseconds: 1_790_000_000_000) }
        var summary = Summary(campaign: fuzzCampaign, outcome: .stopped)
        (summary.counts[.accepted], summary.rows) = (300, 400)
        summary.take(telemetry, run: runCount)
        precondition(!summary.text.isEmpty && !summary.json().isEmpty)
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: manifest.epochs, course: nil,
            ledgerPath: "tonight", listPath: nil, createdAtMilliseconds: 0)
        data.cause = manifest.latestCause(telemetry)
        data.steps =
            StopAdvice(
                of: manifest, telemetry, .init(manifest, telemetry, summary, ledger: "tonight")
            ).steps
        precondition(ReportPage(data: data).html.count > 1000)
    }

    /// What the next run does with it.
    private static func resume(_ telemetry: Telemetry) {
        var telemetry = telemetry
        telemetry.begin(1 << 20, atMilliseconds: 1_790_000_000_000, settings: [])
        telemetry.beginPause(atMilliseconds: 1_790_000_000_001)
        telemetry.endPause(atMilliseconds: 1_790_000_000_002)
        telemetry.end(outcome: "complete", cause: nil, atMilliseconds: 1_790_000_000_003)
        precondition(!telemetry.encoded.isEmpty)
    }
}
