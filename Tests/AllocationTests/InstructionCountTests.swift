import BroadsideTestSupport
import Foundation
import Testing

/// Counts the instructions of each part of the work for a row, by callgrind: the same program as
/// `Benchmarks/run --part parts`, two counts each and their difference.
///
/// The figures are of Debian 12 on x86-64, whose libraries are among what is counted, and do not
/// depend on other work on the machine. A part that became cheaper gets its new figure here.
@Suite(
    .serialized, .timeLimit(.minutes(60)),
    .enabled(if: RareProgram.areTested, "it measures a release build: tools/test --full"))
struct InstructionCountTests {
    struct Part: CustomTestStringConvertible, Sendable {
        var name: String
        /// Instructions per row.
        var count: Double
        /// So many rows, and six times as many.
        var rows = 10_000

        var testDescription: String { name }
    }

    static let parts = [
        Part(name: "row-lines", count: 421),
        Part(name: "row-csv", count: 989),
        Part(name: "row-jsonl", count: 1_126),
        Part(name: "export", count: 1_439),
        Part(name: "export-jsonl", count: 1_450),
        Part(name: "verify", count: 341),
        Part(name: "merge", count: 748),
        Part(name: "request-strict", count: 316),
        Part(name: "request-compact", count: 304),
        Part(name: "response-plain", count: 463),
        Part(name: "response-huffman", count: 463),
        Part(name: "ledger", count: 50),
        Part(name: "pace", count: 182),
        Part(name: "request-template", count: 26_156, rows: 500),
    ]

    /// What compilers and libraries may add.
    private static let slack = 1.03

    @Test(arguments: parts)
    func `A part of the work costs no more instructions than its recorded figure`(_ part: Part)
        throws
    {
        let few = try Self.instructions(part.name, part.rows)
        let many = try Self.instructions(part.name, 6 * part.rows)
        let each = Double(many - few) / Double(5 * part.rows)
        #expect(each > part.count / 2, "a part of the work is not counted, or its figure is old")
        #expect(each <= part.count * Self.slack, "\(part.name): see Benchmarks/Parts")
    }

    private static func instructions(_ part: String, _ count: Int) throws -> Int {
        let path =
            ProcessInfo.processInfo.environment["BROADSIDE_PARTS"]
            ?? "\(Tool.packageRoot)/.build/release/parts"
        guard access(path, X_OK) == 0 else {
            throw TestFailure("\(path) is missing: run swift build -c release --product parts")
        }
        let run = try Subprocess.run(
            "valgrind",
            ["--tool=callgrind", "--callgrind-out-file=/dev/null", path, part, "\(count)"],
            in: TemporaryDirectory())
        guard let found = run.errors.firstMatch(of: /Collected : (\d+)/), let number = Int(found.1)
        else { throw TestFailure("callgrind counted nothing: \(run.errors)") }
        return number
    }
}
