@testable import BroadsideTLS
import Foundation
import XCTest

/// Memory over many sessions. XCTest runs these alone, so that the process' heap is theirs.
final class MemoryTests: XCTestCase {
    /// Bytes in use on the heap and in mappings, from glibc's malloc_info(3).
    private func heapByteCount() -> Int {
        var text: UnsafeMutablePointer<CChar>?
        var count = 0
        let stream = open_memstream(&text, &count)!
        // <malloc.h> is not among the headers that Swift imports.
        typealias Information = @convention(c) (Int32, UnsafeMutableRawPointer) -> Int32
        let information = unsafeBitCast(dlsym(nil, "malloc_info")!, to: Information.self)
        _ = information(0, UnsafeMutableRawPointer(stream))
        fclose(stream)
        defer { free(text) }
        let info = String(cString: text!)
        // The totals stand at the end: free bytes (fast, rest), mapped, and taken from the system.
        func size(_ kind: String) -> Int {
            guard let place = info.range(of: "<\(kind)", options: .backwards),
                let value = info.range(
                    of: "size=\"", range: place.upperBound..<info.endIndex)
            else { return 0 }
            return Int(info[value.upperBound...].prefix { $0.isNumber }) ?? 0
        }
        return size("system type=\"current\"") - size("total type=\"fast\"")
            - size("total type=\"rest\"") + size("total type=\"mmap\"")
    }

    /// The least growth of several rounds: glibc's caches of small pieces count as used and fill up
    /// at first, whereas a leak shows in every round.
    private func leastGrowth(of times: Int, _ body: () throws -> Void) rethrows -> Int {
        var least = Int.max
        for _ in 0..<5 where least > 4096 {
            let before = heapByteCount()
            for _ in 0..<times { try body() }
            least = min(least, heapByteCount() - before)
        }
        return least
    }

    private func exchange(
        _ client: TLSContext, _ server: TLSContext
    ) throws -> (Endpoint, Endpoint) {
        let pair = (
            client: try Endpoint(client, World.host), server: try Endpoint(server)
        )
        pump(pair.client, pair.server)
        pair.client.send([1, 2, 3])
        pair.server.send([4, 5, 6])
        pump(pair.client, pair.server)
        pair.client.plaintext = []
        pair.server.plaintext = []
        return pair
    }

    func testAThousandSessionsLeaveNothingBehind() throws {
        let client = try World.clientContext()
        let server = try World.serverContext()
        let grown = try leastGrowth(of: 1000) { _ = try exchange(client, server) }
        XCTAssertLessThan(grown, 8 * 1024, "bytes left by 1000 pairs of sessions")
    }

    func testFailingSessionsLeaveNothingBehind() throws {
        let client = try World.clientContext { $0.additionalAuthorities = nil }
        let server = try World.serverContext()
        func fail() throws {
            let pair = (try Endpoint(client, World.host), try Endpoint(server))
            pump(pair.0, pair.1)
            XCTAssertEqual(pair.0.error?.code, .certificateUnknownAuthority)
            XCTAssertThrowsError(try Endpoint(client, .address("no address")))
        }
        XCTAssertLessThan(try leastGrowth(of: 300, fail), 8 * 1024)
    }

    func testContextsKeysAndCertificatesLeaveNothingBehind() throws {
        let key = try PrivateKey.generate().pem
        func round() throws {
            _ = try World.clientContext()
            _ = try World.serverContext()
            let signing = try SigningKey(pem: key)
            let signature = try signing.signES256([1])
            XCTAssertTrue(try signing.verifyingKey.verifies(signature, over: [1]))
            let identity = try World.authority.client(
                subject: [("UID", "a.b")], extensions: [("1.2.3.4", [5, 0])])
            let certificate = try Certificate.all(pem: identity.certificateChain)[0]
            XCTAssertEqual(try Certificate(der: certificate.der).subject, "UID=a.b")
            XCTAssertEqual(certificate.extensionValue("1.2.3.4"), [5, 0])
            XCTAssertNotNil(certificate.notAfter)
        }
        XCTAssertLessThan(try leastGrowth(of: 200, round), 8 * 1024)
    }

    /// Two buffers of one record each are most of it; what the handshake leaves is the rest.
    func testAClientsSessionTakesLittleMemory() throws {
        let client = try World.clientContext()
        let server = try World.serverContext()
        _ = try exchange(client, server)
        let before = heapByteCount()
        var clients: [Endpoint] = []
        for _ in 0..<200 { clients.append(try exchange(client, server).0) }
        let active = (heapByteCount() - before) / clients.count
        XCTAssertLessThan(active, 56 * 1024, "bytes a session")
        XCTAssertGreaterThan(active, 36 * 1024, "the measurement itself")
        XCTAssertTrue(clients.allSatisfy { $0.isEstablished })
    }
}
