import BroadsideTestSupport
import Foundation
import Testing

/// A server's program (`Tests/Service`), which is also a package of its own.
@Suite(.timeLimit(.minutes(30)))
struct ServiceTests {
    @Test
    func `A server that cancels half of its pushes keeps nothing of them`() throws {
        let pushes = TestSize.isFull ? 100_000 : 25_000
        let directory = try TemporaryDirectory()
        let run = try Subprocess.run(
            Tool.besideTests("BroadsideService"), ["\(pushes)"], in: directory, limit: 1_200)
        // The library prints nothing itself.
        #expect(run.errors.isEmpty)
        var values: [String: [Int]] = [:]
        var others = ""
        for line in run.output.split(separator: "\n") {
            let words = line.split(separator: " ")
            values[String(words[0])] = words.dropFirst().compactMap { Int($0) }
            if words[0] == "others" { others = String(line) }
        }
        let accepted = try #require(values["accepted"]?.first)
        let cancelled = try #require(values["cancelled"]?.first)
        #expect(accepted + cancelled == pushes, "\(run.output)")
        #expect(others == "others [:]")
        // A push may have its response before its task is cancelled.
        #expect(accepted >= pushes / 2 && cancelled > pushes / 10)
        // Some cancelled pushes were on their way; so were half as many of the first client.
        let received = try #require(values["received"]?.first)
        #expect(received > accepted && received <= pushes / 2 * 3)
        #expect(values["campaign"] == [2_000])
        #expect(values["limits"] == [1] && values["masks"] == [1])
        // A push that was kept would take more than 1,000 bytes. The simulator, in the same process,
        // keeps about 200 bytes per request.
        let grown = try #require(values["grown"]?.first)
        #expect(grown < (4 << 20) + 200 * pushes)
        let threads = try #require(values["threads"])
        #expect(threads[1] <= threads[0] + 2, "\(threads)")
        let descriptors = try #require(values["descriptors"])
        #expect(descriptors[1] <= descriptors[0], "\(descriptors)")
    }

    @Test(.enabled(if: RareProgram.areTested, "it builds all once more: tools/test --full"))
    func `A package with targets of the same names builds with the library`() throws {
        let directory = try TemporaryDirectory()
        let scratch = "\(Tool.packageRoot)/.build/service"
        try Subprocess.run(
            "swift",
            [
                "build", "--package-path", "\(Tool.packageRoot)/Tests/Service", "--scratch-path",
                scratch,
            ], in: directory, limit: 1_800)
        let run = try Subprocess.run(
            "\(scratch)/debug/service", ["1000"], in: directory, limit: 60)
        #expect(run.output.contains("others [:]"), "\(run.output)")
    }
}
