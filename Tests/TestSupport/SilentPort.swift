import Foundation

/// A port that swallows connections as a firewall does: its queue is full, so that the kernel drops
/// whatever comes.
package final class SilentPort {
    package let port: Int
    private let sockets: [Int32]

    package init() throws {
        var sockets: [Int32] = []
        port = try Self.fill(&sockets)
        self.sockets = sockets
    }

    private static func fill(_ sockets: inout [Int32]) throws -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var count = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The first listens; one of the others fills its queue, the rest make sure.
        for _ in 0..<5 {
            sockets.append(
                socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        }
        let descriptors = sockets
        return try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                guard bind(descriptors[0], raw, count) == 0, listen(descriptors[0], 0) == 0,
                    getsockname(descriptors[0], raw, &count) == 0
                else { throw TestFailure("a port can't be taken") }
                for descriptor in descriptors.dropFirst() {
                    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
                    _ = connect(descriptor, raw, count)
                    usleep(20_000)
                }
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
    }

    deinit {
        for descriptor in sockets { close(descriptor) }
    }
}
