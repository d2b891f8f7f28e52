import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideCampaigns

/// Which payload files are refused before anything is sent.
@Suite struct PayloadFilesTests {
    @Test(
        arguments: [
            ("com.example.App", true), ("pass.com.example.card", false), ("{{app}}", false),
            (nil, false),
        ] as [(String?, Bool)])
    func `An empty alert payload is refused if all rows have a topic that is not of a Wallet pass`(
        topic: String?, isRefused: Bool
    ) throws {
        let directory = try TemporaryDirectory()
        var options = SendOptions()
        options.payload = try directory.write("{}", to: "payload.json")
        options.topic = topic
        let warning = "right only for a Wallet pass update"
        do throws(BroadsideError) {
            let files = try PayloadFiles(options)
            #expect(!isRefused)
            #expect(files.warnings.contains { $0.contains(warning) }, "\(files.warnings)")
        } catch {
            #expect(isRefused && error.exitCode == 2)
            #expect(error.message.contains(warning), "\(error.message)")
        }
    }
}
