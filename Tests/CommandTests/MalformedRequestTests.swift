import Foundation
import TestSupport
import Testing

/// Requests that are wrong in themselves: exit 2, one line that names the place and the mend,
/// nothing sent, nothing left behind.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct MalformedRequestTests {
    @Test("Options", arguments: MalformedRequest.options)
    func options(_ test: MalformedRequest) throws { try expectRefusal(test) }

    @Test("Values", arguments: MalformedRequest.values)
    func values(_ test: MalformedRequest) throws { try expectRefusal(test) }

    @Test("Files", arguments: MalformedRequest.files)
    func files(_ test: MalformedRequest) throws { try expectRefusal(test) }

    @Test("Lists", arguments: MalformedRequest.lists)
    func lists(_ test: MalformedRequest) throws { try expectRefusal(test) }

    private func expectRefusal(_ test: MalformedRequest) throws {
        let files = try Files.shared()
        let campaign = files.campaign
        let server = files.server
        let arguments = campaign.arguments(
            to: "127.0.0.1:\(server.port)", test.arguments.map(files.expand), without: test.without)
        let kept = try campaign.directory.names(in: campaign.directory.path)
        let finished = try Broadside.run(arguments, in: files.scratch, limit: 120)
        #expect(finished.exitCode == 2, "\(finished.errors)")
        #expect(finished.output.isEmpty)
        let lines = finished.errorLines
        #expect(lines.count == 1, "\(finished.errors)")
        let line = lines.first ?? ""
        #expect(line.hasPrefix("broadside: "))
        for words in test.says {
            #expect(line.contains(files.expand(words)), "\(line)")
        }
        #expect(try campaign.directory.names(in: campaign.directory.path) == kept)
        #expect(try files.server.events().isEmpty)
    }
}
