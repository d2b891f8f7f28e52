import BroadsideTestSupport
import Foundation
import Testing

/// Requests that are wrong in themselves: exit 2, one line that names the place and the fix,
/// nothing sent, nothing left behind.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct MalformedRequestTests {
    @Test(arguments: MalformedRequest.options)
    func `A malformed option is refused with its name`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    @Test(arguments: MalformedRequest.values)
    func `A malformed value is refused with its option`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    @Test(arguments: MalformedRequest.files)
    func `A file that cannot be used is refused with its option`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    @Test(arguments: MalformedRequest.templates)
    func `A malformed template or header is refused with its place`(_ test: MalformedRequest) throws
    { try expectRefusal(test) }

    @Test(arguments: MalformedRequest.campaigns)
    func `A malformed campaign file is refused with its place`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    @Test(arguments: MalformedRequest.likely)
    func `A newcomer's wrong request is refused with its fix`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    @Test(arguments: MalformedCall.all + MalformedCall.likely)
    func `A malformed request of another command is refused with its fix`(_ test: MalformedCall)
        throws
    {
        try expectRefusal(test.arguments.map(try Files.shared().expand), says: test.says)
    }
    @Test(arguments: MalformedRequest.lists)
    func `A malformed list is refused with its option`(_ test: MalformedRequest) throws {
        try expectRefusal(test)
    }

    private func expectRefusal(_ test: MalformedRequest) throws {
        let files = try Files.shared()
        try expectRefusal(
            files.campaign.arguments(
                to: "127.0.0.1:\(files.server.port)", test.arguments.map(files.expand),
                without: test.without), says: test.says)
    }

    private func expectRefusal(_ arguments: [String], says: [String]) throws {
        let files = try Files.shared()
        let campaign = files.campaign
        let kept = try campaign.directory.names(in: campaign.directory.path)
        let finished = try Broadside.run(arguments, in: files.scratch, limit: 120)
        #expect(finished.exitCode == 2, "\(finished.errors)")
        // The doctor's findings are its output, those about files too.
        #expect(finished.output.isEmpty || arguments.first == "doctor")
        let lines = finished.errorLines
        #expect(lines.count == 1, "\(finished.errors)")
        let line = lines.first ?? ""
        #expect(line.hasPrefix("broadside: ") && line.contains(": "), "\(line)")
        // A name that was put together twice.
        #expect(!line.contains(/(--[a-z-]+) \1/), "\(line)")
        for words in says {
            #expect(line.contains(files.expand(words)), "\(line)")
        }
        #expect(try campaign.directory.names(in: campaign.directory.path) == kept)
        #expect(try files.server.events().isEmpty)
        #expect(try files.scratch.names(in: files.scratch.path).allSatisfy { $0 != "x" })
    }
}
