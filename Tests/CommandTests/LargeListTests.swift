import BroadsideTestSupport
import Foundation
import Testing

/// Prune and dedupe against awk: 200,000 rows, or 10 million in `tools/test --nightly`.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LargeListTests {
    private static let rows = TestSize.isLong ? 10_000_000 : 200_000

    @Test func `The pruned and deduplicated list of a large campaign equals awk's`() throws {
        let server = try LocalAPNs(["--unregistered", "0.01"])
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(to: server.endpoint, ["--summary", "-"], limit: 900)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rejected > Self.rows / 150 && summary.rejected < Self.rows / 70)

        let path = campaign.directory.path
        let list = "\(path)/copies.txt"
        try Self.writeCopies(of: campaign.list, to: list)
        try run(
            """
            broadside=$1; cd "$2"
            "$broadside" ledger export --ledger ledger --state rejected --output dead.csv
            awk -F, 'NR == FNR { dead[$2]; next } !($1 in dead)' dead.csv copies.txt > kept.awk
            awk -F, 'NR == FNR { dead[$2]; next } $1 in dead' dead.csv copies.txt > gone.awk
            awk '!seen[$1]++' copies.txt > once.awk
            """, campaign)
        for (output, removed) in [("kept", "gone"), ("kept.gz", "gone.zst")] {
            let (pruned, peak) = try Broadside.runMeasured(
                [
                    "prune", "--ledger", campaign.ledger, "--tokens", list, "--output",
                    "\(path)/\(output)", "--removed", "\(path)/\(removed)",
                ], in: campaign.directory, limit: 300)
            #expect(pruned.exitCode == 0, "\(pruned.errors)")
            // The dead take about 90 bytes each.
            #expect(peak < (64 << 20) + 100 * summary.rejected, "\(peak)")
        }
        for output in ["once", "once.zst"] {
            let (deduped, peak) = try Broadside.runMeasured(
                ["tokens", "dedupe", "--tokens", list, "--output", "\(path)/\(output)"],
                in: campaign.directory, limit: 300)
            #expect(deduped.exitCode == 0, "\(deduped.errors)")
            #expect(peak < 160 << 20, "\(peak)")
        }
        try run(
            """
            cd "$2"
            cmp kept kept.awk
            cmp gone gone.awk
            cmp once once.awk
            gzip -dc kept.gz | cmp - kept.awk
            zstd -dc gone.zst | cmp - gone.awk
            zstd -dc once.zst | cmp - once.awk
            test -s gone.awk
            if cmp -s once.awk copies.txt; then exit 1; fi
            """, campaign)
    }

    /// The list, with a copy of an earlier row behind every fiftieth.
    private static func writeCopies(of list: String, to path: String) throws {
        let text = try Data(contentsOf: URL(filePath: list), options: .alwaysMapped)
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        let output = try FileHandle(forWritingTo: URL(filePath: path))
        defer { try? output.close() }
        let line = 65
        for start in stride(from: 0, to: text.count, by: 50 * line) {
            let end = min(start + 50 * line, text.count)
            let copy = Int.random(in: 0..<(end / line)) * line
            try output.write(contentsOf: text[start..<end] + text[copy..<(copy + line)])
        }
    }

    private func run(_ script: String, _ campaign: Campaign) throws {
        try Subprocess.run(
            "bash",
            ["-euo", "pipefail", "-c", script, "-", Broadside.path(), campaign.directory.path],
            in: campaign.directory, limit: 900)
    }
}
