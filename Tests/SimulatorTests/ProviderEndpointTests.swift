import Foundation
import Testing

@testable import BroadsideSimulator

/// The start of a simulator.
@Suite struct ProviderEndpointTests {
    @Test func `A start that fails at its last service ends those that it started before`() throws {
        // The kernel chooses a port of an address that no other test uses.
        let earlier = try EndpointHarness { $0.listen = "127.91.7.3:0" }
        let address = earlier.endpoint.address
        _ = earlier.stop()
        let folder = Folder()
        var options = SimulatorOptions(state: folder.file("state"))
        options.listen = "127.0.0.1:0"
        options.control = folder.file("control")
        options.binaryListen = address
        options.feedbackListen = address
        let error = #expect(throws: SimulatorError.self) { try ProviderEndpoint(options) }
        #expect(error?.description.hasPrefix("--feedback-listen: ") == true, "\(error as Any)")
        #expect(!FileManager.default.fileExists(atPath: folder.file("control")))
        options.feedbackListen = nil
        _ = try ProviderEndpoint(options).stop()
    }
}
