internal import BroadsideAPNs
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

extension StateDirectory {
    /// Maximum number of tokens written for the other environment. The same maximum applies to the
    /// other topic. Tests use these tokens to check that the simulator refuses them.
    private static let foreignTokens = 100
    /// Maximum number of tokens written for VoIP. The same maximum applies to device management.
    private static let specialTokens = 10_000

    /// Writes the device tokens issued by this APNs, which then accepts no others:
    ///
    ///     tokens.txt                    the requested number, of this environment and the topic
    ///     tokens-voip.txt               up to 10,000 for the VoIP topic, which has its own tokens
    ///     tokens-mdm.txt                up to 10,000 for the topic of device management
    ///     tokens-other-environment.txt  up to 100 of the other environment: BadDeviceToken
    ///     tokens-other-topic.txt        up to 100 of the other topic: DeviceTokenNotForTopic
    ///     token.key                     the key that encrypts the tokens, made on first use
    func issueTokens(
        _ count: Int, environment: Endpoints.Environment
    ) throws(SimulatorError) -> TokenTrust {
        let trust = TokenTrust(key: try tokenKey(), environment: environment)
        let special = min(count, Self.specialTokens)
        var lists = [
            TokenList(
                path: file("tokens.txt"), count: count, topic: topic, environment: environment),
            TokenList(
                path: file("tokens-other-environment.txt"), count: min(count, Self.foreignTokens),
                topic: topic, environment: environment.other),
            TokenList(
                path: file("tokens-other-topic.txt"), count: min(count, Self.foreignTokens),
                topic: config.other_topic, environment: environment),
        ]
        lists.append(
            TokenList(
                path: file("tokens-voip.txt"), count: special,
                topic: topic + PushType.voip.topicSuffix!, environment: environment))
        if let management = config.mdm_topic {
            lists.append(
                TokenList(
                    path: file("tokens-mdm.txt"), count: special, topic: management,
                    environment: environment))
        }
        // All files are checked before the first is written.
        var outdated: [TokenList] = []
        for list in lists where try list.isOutdated(trust) { outdated.append(list) }
        for list in outdated { try list.write(trust) }
        return trust
    }

    /// The time at which `tokens.txt` was written, milliseconds since the epoch.
    var tokensIssuedMilliseconds: UInt64 {
        guard let time = SystemCall.status(file("tokens.txt"))?.st_mtim else { return 0 }
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }

    private func tokenKey() throws(SimulatorError) -> [UInt8] {
        let path = file("token.key")
        if try !PrivateFile.exists(path) {
            try PrivateFile.create(
                path, randomBytes(AuthenticatedCipher.keyCount), mode: 0o600)
        }
        let key = try PrivateFile.read(path, option: "state")
        guard key.count == AuthenticatedCipher.keyCount else {
            throw SimulatorError(
                "\(path) is not a key of \(AuthenticatedCipher.keyCount) bytes: move it away, and "
                    + "the next start creates a new key",
                exitCode: 2)
        }
        return key
    }
}

/// A file of issued device tokens, one per line. The devices are in order, from 0 on.
private struct TokenList {
    let path: String
    let count: Int
    let topic: String
    let environment: Endpoints.Environment

    /// Returns whether the simulator must write the file. This is the case if the file is missing,
    /// or if an earlier start wrote the file for another count, topic or environment. Throws if
    /// another program wrote the file.
    ///
    /// The simulator wrote the file if the key in `trust` decrypts each line to the number of a
    /// device: device 0 on the first line, device 1 on the second line, and so on.
    func isOutdated(_ trust: TokenTrust) throws(SimulatorError) -> Bool {
        guard try PrivateFile.exists(path) else { return true }
        var lines = 0
        var isSame = true
        let isOwn = try PrivateFile.forEachLine(path) { line in
            defer { lines += 1 }
            if isSame, lines < count, line == self.line(lines, trust) { return true }
            isSame = false
            guard
                let token = TokenTrust.bytes(ofDigits: line.span.rawBytes)
            else { return false }
            return trust.device(of: token) == UInt64(lines) && line == Self.digits(token)
        }
        guard isOwn else { throw PrivateFile.foreign(path) }
        return !isSame || lines != count
    }

    /// Writes a temporary file and renames it, so that no reader sees a partial file.
    func write(_ trust: TokenTrust) throws(SimulatorError) {
        let new = "\(path).new-\(getpid())"
        try PrivateFile.create(new, mode: 0o644) { append throws(SimulatorError) in
            for device in 0..<count { try append(line(device, trust) + [0x0a]) }
        }
        guard SystemCall.rename(new, path) == 0 else {
            let reason = describe(errno: errno)
            SystemCall.unlink(new)
            throw SimulatorError("\(path): \(reason)", exitCode: 5)
        }
    }

    /// Returns the digits of a device's token.
    private func line(_ device: Int, _ trust: TokenTrust) -> [UInt8] {
        Self.digits(
            trust.issue(
                device: UInt64(device), topic: Array(topic.utf8), environment: environment))
    }

    private static func digits(_ token: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var line: [UInt8] = []
        line.reserveCapacity(2 * token.count + 1)
        for byte in token {
            line.append(digits[Int(byte >> 4)])
            line.append(digits[Int(byte & 15)])
        }
        return line
    }
}
