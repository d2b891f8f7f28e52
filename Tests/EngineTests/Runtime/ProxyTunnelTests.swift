import BroadsideTLS
import Testing

@testable import BroadsideEngine

/// The opening of a connection through a proxy, byte by byte.
struct ProxyTunnelTests {
    private enum Outcome: Equatable {
        case waits
        case opens(consumed: Int)
        case refuses(String, isLasting: Bool)
    }

    /// Feeds an answer in pieces of a size.
    private func outcome(
        _ answer: String, pieces: Int = .max, authorization: String? = nil
    ) -> (request: String, outcome: Outcome) {
        var secret = authorization.map { Array($0.utf8) }
        var tunnel = ProxyTunnelStateMachine(
            .init(
                proxy: "proxy:3128", target: "api.push.example:443",
                authorization: secret != nil ? SecretBytes(taking: &secret!) : nil))
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 8)
        defer { room.deallocate() }
        var output = OutputRawSpan(buffer: room, initializedCount: 0)
        var offset = 0
        _ = tunnel.receive(RawSpan(), at: &offset, output: &output)
        var consumed = 0
        var outcome = Outcome.waits
        let bytes = Array(answer.utf8)
        feeding: for start in stride(from: 0, to: bytes.count, by: min(pieces, bytes.count)) {
            let piece = Array(bytes[start..<min(bytes.count, start + min(pieces, bytes.count))])
            offset = 0
            let action = tunnel.receive(piece.span.bytes, at: &offset, output: &output)
            consumed += offset
            switch action {
            case .wait: continue
            case .open: outcome = .opens(consumed: consumed)
            case .refused(let error):
                outcome = .refuses(error.message, isLasting: error.isLasting)
            }
            break feeding
        }
        let count = output.finalize(for: room)
        return (String(decoding: room[..<count], as: UTF8.self), outcome)
    }

    @Test func `A CONNECT request names the target twice and has the password once`() {
        #expect(
            outcome("HTTP/1.1 200 OK\r\n\r\n").request
                == "CONNECT api.push.example:443 HTTP/1.1\r\nHost: api.push.example:443\r\n\r\n")
        #expect(
            outcome("HTTP/1.1 200 OK\r\n\r\n", authorization: "Basic YTpi").request
                == "CONNECT api.push.example:443 HTTP/1.1\r\nHost: api.push.example:443\r\n"
                + "Proxy-Authorization: Basic YTpi\r\n\r\n")
    }

    @Test(arguments: [1, 2, 7, 999])
    func `A tunnel opens at the blank line and leaves what follows to TLS`(_ pieces: Int) {
        for head in [
            "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", "HTTP/1.0 200 OK\n\n",
            "HTTP/1.1 204\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ] {
            let found = outcome(head + "\u{16}\u{03}rest", pieces: pieces).outcome
            #expect(found == .opens(consumed: head.utf8.count), "\(head)")
        }
        #expect(outcome("HTTP/1.1 200 OK\r\nVia: x\r\n", pieces: pieces).outcome == .waits)
    }

    @Test func `A proxy's refusal is reported as the proxy's, with whether it is lasting`() {
        func expect(
            _ answer: String, _ words: String, isLasting: Bool, authorization: String? = nil
        ) {
            let found = outcome(answer, pieces: 3, authorization: authorization).outcome
            guard case .refuses(let message, let stays) = found else {
                Issue.record("\(answer) is not refused")
                return
            }
            #expect(message.hasPrefix("the proxy proxy:3128 "))
            #expect(message.contains(words), "\(message)")
            #expect(stays == isLasting, "\(message)")
        }
        let plain = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: "
        expect(plain + "Basic realm=\"x\"\r\n\r\n", "add --proxy-auth-file", isLasting: true)
        expect(
            plain + "Basic\r\n\r\n", "check user and password", isLasting: true,
            authorization: "Basic YTpi")
        expect(
            plain + "NTLM\r\nproxy-authenticate: Negotiate\r\n\r\n", "ntlm, negotiate",
            isLasting: true)
        expect(
            plain + "\u{1b}[2JNTLM\u{7}\u{9b}\r\n\r\n", "asks for [2jntlm: ", isLasting: true)
        expect("HTTP/1.1 403 Denied\r\n\r\n", "refused CONNECT to api.push", isLasting: true)
        expect("HTTP/1.1 503 Busy\u{1b}[31m\r\n\r\n", "(503 Busy[31m)", isLasting: false)
        expect("SSH-2.0-OpenSSH\r\n", "does not respond as a proxy", isLasting: false)
        expect("HTTP/1.1 99 x\r\n", "does not respond as a proxy", isLasting: false)
        expect(String(repeating: "x", count: 9000), "more than 8192 bytes", isLasting: false)
        expect(
            "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 2000),
            "more than 8192 bytes", isLasting: false)
    }
}
