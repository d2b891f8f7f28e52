import BroadsideTestSupport
import Foundation
import Testing

/// Segments that are gone, or empty, of a run that was killed: never taken for one that began nothing.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LostSegmentTests {
    /// Five seconds of work, of which half a second passes before the run is killed.
    private let rows = 2_000

    /// What is left of the segments of reactors 0 and 1: all, so many bytes, or no file.
    struct Loss: CustomStringConvertible, Sendable {
        var description: String
        var left: [Int?]
    }

    /// Leaves so many bytes of a segment of the first run, or no file.
    private func cut(_ ledger: String, _ reactor: Int, to left: Int?) throws {
        let path = "\(ledger)/segment-0001-0\(reactor)"
        #expect(FileManager.default.fileExists(atPath: path))
        if let left {
            #expect(truncate(path, left) == 0)
        } else {
            try FileManager.default.removeItem(atPath: path)
        }
    }

    static let losses = [
        Loss(description: "the first is missing", left: [nil, .max]),
        Loss(description: "both are missing", left: [nil, nil]),
        Loss(description: "the first is empty", left: [0, .max]),
        Loss(description: "half a header", left: [.max, 16]),
    ]
    static let otherLosses = [
        Loss(description: "the second is missing", left: [.max, nil]),
        Loss(description: "both are empty", left: [0, 0]),
    ]

    @Test(arguments: TestSize.cases(losses + otherLosses, otherwise: losses))
    func `A lost segment is exit 5 with the repair command, and after it nothing is sent twice`(
        _ loss: Loss
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: rows)
        let options = ["--resume-or-begin", "--reactors", "2", "--connections", "2"]
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, options + ["--rate", "400"]),
            in: campaign.directory)
        try process.wait {
            (try? campaign.statistics().accepted).map { $0 >= 200 } ?? false
        }
        process.send(signal: SIGKILL)
        _ = try process.wait(limit: 60)
        #expect(try campaign.ledger("verify").exitCode == 0)
        for (reactor, left) in loss.left.enumerated() where left != .max {
            try cut(campaign.ledger, reactor, to: left)
        }

        let before = try server.tally(campaign.tokens)
        #expect(before.total >= 200)
        for finished in [
            try campaign.ledger("verify"), try campaign.ledger("stats"),
            try campaign.send(to: server.endpoint, options),
            try campaign.send(to: server.endpoint, ["--must-resume"]),
        ] {
            #expect(finished.exitCode == 5, "\(loss): \(finished.errors)")
            #expect(
                finished.errors.contains("broadside ledger repair --ledger \(campaign.ledger)"),
                "\(finished.errors)")
        }
        #expect(try server.tally(campaign.tokens).total == before.total)

        let repaired = "\(campaign.ledger)-repaired"
        let done = try campaign.ledger("repair", ["--output", repaired])
        #expect(done.exitCode == 0 && done.output.contains("lost segment-0001-0"), "\(done.output)")
        let resumed = try campaign.send(
            to: server.endpoint, options + ["--ledger", repaired])
        #expect(resumed.exitCode == 6, "\(resumed.errors)")
        let after = try server.tally(campaign.tokens)
        #expect(after.repeated == 0, "\(loss): \(after)")
        let retried = try campaign.send(
            to: server.endpoint, options + ["--ledger", repaired, "--retry", "unknown"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        #expect(try server.tally(campaign.tokens).missing == 0)
    }

    /// - Parameter left: how many bytes of the second segment are left; nil: no file.
    @Test(arguments: [nil, 0] as [Int?])
    func `A lost segment of a copy without its claim is exit 5 in commands that read verdicts`(
        left: Int?
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: rows)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--reactors", "2", "--connections", "2", "--rate", "400"]),
            in: campaign.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 >= 200 }
        process.send(signal: SIGKILL)
        _ = try process.wait(limit: 60)
        try? FileManager.default.removeItem(atPath: "\(campaign.ledger)/control")
        let copy = "\(campaign.directory.path)/elsewhere/ledger"
        try FileManager.default.createDirectory(
            atPath: "\(campaign.directory.path)/elsewhere", withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: campaign.ledger, toPath: copy)
        let next = "\(campaign.directory.path)/next"
        let calls = [
            ["prune", "--tokens", campaign.list, "--ledger", copy, "--output", next],
            campaign.arguments(
                to: server.endpoint, ["--cap", "1/7d", "--history", copy, "--ledger", next]),
            ["ledger", "forget", "--token", campaign.tokens.token(0), "--ledger", copy],
            ["ledger", "export", "--follow", "--ledger", copy],
        ]
        try cut(copy, 1, to: left)
        for call in calls {
            let refused = try Broadside.run(call, in: campaign.directory)
            #expect(refused.exitCode == 5, "\(call): \(refused.output)\(refused.errors)")
            #expect(
                refused.errors.contains("segment-0001-01 at byte 0: ")
                    && refused.errors.contains("broadside ledger repair --ledger \(copy)"),
                "\(call): \(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: next))
        }
    }
}
