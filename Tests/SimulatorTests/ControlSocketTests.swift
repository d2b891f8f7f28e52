import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideSimulator

/// The control socket with several clients.
@Suite struct ControlSocketTests {
    @Test func `While a client waits, others are served, and the wait ends with the simulator`()
        throws
    {
        let folder = Folder()
        defer { withExtendedLifetime(folder) {} }
        let path = folder.file("control")
        let harness = try EndpointHarness { $0.control = path }
        // The second client connects first.
        let requests = ["status", "wait 1 timeout=60s"]
        var responses: [String] = []
        UnixLineClient.ask(requests.count) { index in
            UnixLineClient(path, request: requests[index], seconds: 70)
        } _: { index, outcome in
            responses.append("\(requests[index]): \((try? outcome.get()) ?? "\(outcome)")")
            if index == 0 { _ = harness.stop() }
        }
        #expect(responses.count == 2)
        #expect(responses.first?.hasPrefix("status: {\"ok\":true") == true, "\(responses)")
        #expect(responses.last?.contains("only 0 of 1 requests came") == true, "\(responses)")
    }

    @Test func `A wait of the socket is over once enough requests came`() throws {
        let folder = Folder()
        defer { withExtendedLifetime(folder) {} }
        let harness = try EndpointHarness { $0.control = folder.file("control") }
        let commands = harness.endpoint.commands
        guard case .later(let response) = commands.deferredResponse("wait 2 after=1 timeout=60s")
        else {
            Issue.record("a wait responds later")
            return
        }
        #expect(response() == nil)
        for _ in 0..<2 { commands.instruments.received?.append(ReceivedRequest()) }
        #expect(response() == nil)
        commands.instruments.received?.append(ReceivedRequest())
        #expect(response() == "{\"ok\":true,\"count\":2,\"last\":3}")
        for line in ["wait", "wait 1 timeout=61s", "wait 0", "status"] {
            guard case .now(let text) = commands.deferredResponse(line) else {
                Issue.record("\(line) responds at once")
                continue
            }
            #expect(text.hasPrefix("{\"ok\":\(line == "status")"), "\(text)")
        }
    }
}
