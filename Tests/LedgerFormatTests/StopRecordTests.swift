import Foundation
import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsidePolicy

/// Why a run ended is kept with its ledger: what was stored is read back, in this version and the next.
@Suite struct StopRecordTests {
    static let refusal = StopCause.Refusal(
        status: 403, reason: .invalidProviderToken, isCredential: true)
    /// A refusal whose reason this version does not know.
    private static let unknown: StopCause.Refusal = {
        var refusal = StopCause.Refusal(status: 400, reason: nil, isCredential: false)
        refusal.unknownReason = "NewReason"
        return refusal
    }()

    @Test(
        arguments: [
            .complete, .signal, .control, .keyboard, .deadline,
            .gaveUp(.init(.resolve, "x: no such name")),
            .gaveUp(.init(.tokenUpdates, "y")), .noResponse(seconds: 60, last: nil),
            .noResponse(seconds: 5, last: .init(.silent, "z")),
            .brokenServer(.init(.protocol, "p")),
            .refused(refusal),
            .refused(.init(status: 0, reason: .badCertificate, isCredential: true)),
            .refused(.init(status: 404, reason: nil, isCredential: false)),
            .refused(unknown), .allRefused(rows: 3, unknown),
            .heldBack(rows: 7, refusal), .heldBack(rows: 7, nil),
            .allRefused(rows: 3, refusal), .allRefused(rows: 3, nil), .onlyBadTokens(refusal),
            .topicsRefused(detail: "a", refusal), .topicsRefused(detail: "a", nil),
            .tooManyBadTokens, .tooManyInvalid(count: 3, rows: 9),
            .canaryRefused(count: 1, answered: 2), .canaryWithoutResponses,
            .expiredToken(isSupplied: true),
            .expiredToken(isSupplied: false), .signingFailed, .ledgerFailed(detail: "full"),
            .ledgerGone,
            .superseded, .listFailed(detail: "cut off"), .listFaulty(detail: "line 9"),
            .listChanged(detail: "longer"),
            .failed(detail: "ring"),
        ] as [StopCause])
    func `A stop cause is read as it was saved`(cause: StopCause) throws {
        let record = StopRecord(cause, wasAnswered: true)
        let data = try JSONEncoder().encode(record)
        let read = try JSONDecoder().decode(StopRecord.self, from: data)
        #expect(read == record && read.cause == cause && read.wasAnswered)
    }

    @Test(
        arguments: [
            ("gave-up", .gaveUp(.init(.other, ""))),
            ("no-response", .noResponse(seconds: 0, last: nil)),
            ("broken-server", .brokenServer(.init(.other, ""))),
            ("refused", .refused(.init(status: 0, reason: nil, isCredential: true))),
            ("held-back", .heldBack(rows: 0, nil)), ("all-refused", .allRefused(rows: 0, nil)),
            ("only-bad-tokens", .onlyBadTokens(.init(status: 0, reason: nil, isCredential: true))),
            ("too-many-invalid", .tooManyInvalid(count: 0, rows: 0)),
            ("canary-refused", .canaryRefused(count: 0, answered: 0)),
            ("expired-token", .expiredToken(isSupplied: false)),
            ("ledger-failed", .ledgerFailed(detail: "")), ("failed", .failed(detail: "")),
        ] as [(String, StopCause)])
    func `A missing field of a stop record is nil, and a refusal without more is the credential's`(
        kind: String, cause: StopCause
    ) throws {
        let text = #"{"kind":"\#(kind)","wasAnswered":false}"#
        let read = try JSONDecoder().decode(StopRecord.self, from: Data(text.utf8))
        #expect(read.cause == cause && !read.wasAnswered)
    }

    @Test func `A stop record keeps 500 characters of its text`() {
        let long = String(repeating: "é", count: 501)
        for cause in [
            .failed(detail: long), .ledgerFailed(detail: long), .gaveUp(.init(.resolve, long)),
        ] as [StopCause] {
            let record = StopRecord(cause, wasAnswered: true)
            #expect(record.detail == String(long.dropLast()))
        }
    }

    @Test func `A manifest keeps the stop cause of each run`() throws {
        var manifest = Manifest(
            campaign: 7,
            identity: CampaignIdentity(
                listByteCount: 1, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 1,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        let old = try Manifest(decoding: manifest.encoded())
        #expect(old.epochs[0].stop == nil)
        let record = StopRecord(.refused(Self.refusal), wasAnswered: true)
        manifest.endEpoch(lengths: [], isFinished: false, stop: record)
        _ = manifest.beginEpoch(atMilliseconds: 2)
        let read = try Manifest(decoding: manifest.encoded())
        #expect(read.epochs.map(\.stop) == [record, nil])
        // A run that ended as a later version may say is not damage.
        var strange = record
        strange.kind = "eclipse"
        manifest.endEpoch(lengths: [], isFinished: false, stop: strange)
        #expect(try Manifest(decoding: manifest.encoded()).epochs[1].stop?.kind == "eclipse")
        #expect(strange.cause == nil)
    }
}
