import BroadsideTestSupport
import Foundation
import Testing

/// A process does not wait for threads that hang, and such a thread may end while the process does.
@Suite(.timeLimit(.minutes(60)))
struct ExitHandlerTests {
    @Test func `OpenSSL frees nothing when the process exits`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 10)
        let directory = campaign.directory
        let library = try Shim.compile("exit-handlers", in: directory)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, []), in: directory,
            environment: ["LD_PRELOAD": library])
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        // The watch works: GnuTLS or another library has a handler.
        #expect(sent.errors.contains("exit handler of "), "\(sent.errors)")
        #expect(!sent.errors.contains("libcrypto"), "\(sent.errors)")
        #expect(try server.finish().count == 10)
    }
}
