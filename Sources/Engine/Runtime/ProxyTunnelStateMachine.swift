internal import BroadsideSupport
package import BroadsideTLS

/// Opens a connection through an HTTP proxy (RFC 9110, section 9.3.6), without I/O.
///
///     unrequested -- CONNECT --> requested -- response 2xx ------> open: the server's bytes follow
///                                 ^     |---- other response ----> refused: the proxy's status
///                                 '-----'
///                              response 1xx
package struct ProxyTunnelStateMachine: ~Copyable {
    /// Proxy, and target of the tunnel.
    package struct Configuration: Sendable {
        /// `HOST:PORT` of the proxy, for messages.
        package var proxy: String
        /// `HOST:PORT` of the tunnel's far end; the proxy resolves the name.
        package var target: String
        /// Value of Proxy-Authorization; nil: not sent.
        var authorization: SecretBytes?

        package init(proxy: String, target: String, authorization: SecretBytes?) {
            self.proxy = proxy
            self.target = target
            self.authorization = authorization
        }
    }

    /// Action after received bytes.
    package enum Action: Sendable {
        /// The response is incomplete.
        case wait
        /// The tunnel is open; further bytes come from its far end.
        case open
        /// The proxy refused the tunnel.
        case refused(RecordLayerError)
    }

    private enum Phase {
        case unrequested
        case requested
        case open
        case refused(RecordLayerError)
    }

    /// Limit on bytes of a proxy's response; proxies send a few hundred.
    static let responseLimit = 8192

    private let configuration: Configuration
    private var phase = Phase.unrequested
    private var head: [UInt8] = []

    package init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// Whether received bytes come from the server instead of the proxy.
    var isOpen: Bool {
        if case .open = phase { return true }
        return false
    }

    /// Processes received bytes up to the end of the proxy's response. The first call has no input;
    /// it writes the request.
    package mutating func receive(
        _ input: RawSpan, at offset: inout Int, output: inout OutputRawSpan
    ) -> Action {
        if case .unrequested = phase {
            phase = .requested
            var request = request
            for byte in request { output.append(byte) }
            request.cleanse()
        }
        while offset < input.byteCount {
            guard case .requested = phase else { break }
            // SAFETY: the offset is within the span, and each byte is a valid UInt8.
            let byte = unsafe input.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            offset += 1
            head.append(byte)
            if byte == 0x0a { endLine() }
            if case .requested = phase, head.count >= Self.responseLimit {
                refuse("responds with more than \(Self.responseLimit) bytes: \(Self.wrongPort)")
            }
        }
        assert(head.count <= Self.responseLimit, "a response has a limit")
        switch phase {
        case .open: return .open
        case .refused(let error): return .refused(error)
        case .unrequested, .requested: return .wait
        }
    }

    /// Error to report if the proxy closes the connection before its response.
    package var closedEarly: RecordLayerError {
        error("closed the connection without a response to CONNECT: \(Self.wrongPort)")
    }

    private var request: [UInt8] {
        var request = Array(
            "CONNECT \(configuration.target) HTTP/1.1\r\nHost: \(configuration.target)\r\n".utf8)
        // Reserves the full size, so that no reallocation leaves a copy of the secret behind.
        request.reserveCapacity(request.count + (configuration.authorization?.count ?? 0) + 32)
        if let authorization = configuration.authorization {
            request += "Proxy-Authorization: ".utf8
            authorization.withBytes { bytes in
                request.append(bytes)
            }
            request += "\r\n".utf8
        }
        request += "\r\n".utf8
        return request
    }

    // MARK: Response

    private static let wrongPort = "check that --proxy names an HTTP proxy"

    /// Checks each line when it is complete. A first line that is not HTTP ends the tunnel at once.
    private mutating func endLine() {
        let lines = head.split(separator: 0x0a, omittingEmptySubsequences: false).dropLast().map {
            $0.last == 0x0d ? $0.dropLast() : $0
        }
        guard let first = lines.first, let status = Self.status(first) else {
            refuse("does not respond as a proxy does: \(Self.wrongPort)")
            return
        }
        guard lines.count > 1, lines.last?.isEmpty == true else { return }
        defer { head.removeAll() }
        switch status.code {
        case 100..<200: break
        // "Any 2xx (Successful) response indicates that the sender … will switch to tunnel mode."
        case 200..<300: phase = .open
        default:
            refuse(status.code, status.statusText, offered: Self.schemes(lines.dropFirst()))
        }
    }

    /// Parses a status line, such as `HTTP/1.1 407 Proxy Authentication Required`. Returns the code
    /// as a number, and as a text that includes the phrase.
    private static func status(_ line: ArraySlice<UInt8>) -> (code: Int, statusText: String)? {
        let parts = line.split(separator: 0x20, maxSplits: 2)
        guard parts.count >= 2, parts[0].starts(with: "HTTP/1.".utf8), parts[1].count == 3,
            let code = Int(String(decoding: parts[1], as: UTF8.self)), code >= 100
        else { return nil }
        return (code, "\(code) " + (parts.count > 2 ? visible(parts[2]) : ""))
    }

    /// Beginning of a proxy's text, without control characters.
    private static func visible(_ text: some Collection<UInt8>) -> String {
        String(decoding: text.filter { $0 >= 0x20 && $0 < 0x7f }.prefix(60), as: UTF8.self)
    }

    /// Schemes in Proxy-Authenticate (RFC 9110, section 11.7.1), in lower case.
    private static func schemes(_ lines: ArraySlice<ArraySlice<UInt8>>) -> [String] {
        lines.compactMap { line in
            let text = String(decoding: line, as: UTF8.self).lowercased()
            guard text.hasPrefix("proxy-authenticate:") else { return nil }
            return text.dropFirst(19).split(separator: " ").first.map { visible($0.utf8) }
        }
    }

    private mutating func refuse(_ code: Int, _ statusText: String, offered: [String]) {
        let target = configuration.target
        switch code {
        case 407 where !offered.isEmpty && !offered.contains("basic"):
            refuse(
                "refused CONNECT with \(statusText) and asks for \(offered.joined(separator: ", ")): "
                    + "broadside supports only basic authentication", isLasting: true)
        // RFC 9110, section 15.5.8 requires 407; tinyproxy sends 401 after a wrong password.
        case 401 where configuration.authorization != nil,
            407 where configuration.authorization != nil:
            refuse(
                "refused CONNECT with \(statusText): check user and password in --proxy-auth-file",
                isLasting: true)
        case 407:
            refuse("refused CONNECT with \(statusText): add --proxy-auth-file", isLasting: true)
        case 400..<500:
            refuse(
                "refused CONNECT to \(target) with \(statusText): have the proxy's rules allow "
                    + "that host and port", isLasting: true)
        default:
            refuse(
                "could not open a tunnel to \(target) (\(statusText)): check the endpoint and the "
                    + "proxy's own network")
        }
    }

    private mutating func refuse(_ what: String, isLasting: Bool = false) {
        phase = .refused(error(what, isLasting: isLasting))
    }

    private func error(_ what: String, isLasting: Bool = false) -> RecordLayerError {
        var error = RecordLayerError(
            message: "the proxy \(configuration.proxy) \(what)", isLasting: isLasting)
        error.namesPeer = true
        return error
    }
}
