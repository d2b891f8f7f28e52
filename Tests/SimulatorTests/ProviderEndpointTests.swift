import Foundation
import Testing

@testable import BroadsideSimulator

/// The start of a simulator.
@Suite struct ProviderEndpointTests {
    @Test func `A start that fails at its last service ends those that it started before`() throws {
        let other = try EndpointHarness { $0.listen = "127.0.0.1:0" }
        defer { _ = other.stop() }
        let folder = Folder()
        var options = SimulatorOptions(state: folder.file("state"))
        options.listen = "127.0.0.1:0"
        options.control = folder.file("control")
        options.binaryListen = "127.0.0.1:0"
        options.feedbackListen = other.endpoint.address
        let error = #expect(throws: SimulatorError.self) { try ProviderEndpoint(options) }
        #expect(error?.description.hasPrefix("--feedback-listen: ") == true, "\(error as Any)")
        #expect(!FileManager.default.fileExists(atPath: folder.file("control")))
    }
}
