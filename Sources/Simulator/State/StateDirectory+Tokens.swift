internal import FoundationEssentials
internal import Glibc
internal import TLS

extension StateDirectory {
    /// Tokens of the other environment and of the other topic that are written besides, to be
    /// refused.
    private static let foreignTokens = 100

    /// Writes device tokens that this APNs knows, and tells them from all others:
    ///
    ///     tokens.txt                    as many as asked for, of this environment and the topic
    ///     tokens-other-environment.txt  up to 100 of the other environment: BadDeviceToken
    ///     tokens-other-topic.txt        up to 100 of the other topic: DeviceTokenNotForTopic
    ///     token.key                     what they are sealed with, made on first use
    func issueTokens(
        _ count: Int, environment: SimulatorEnvironment
    ) throws(SimulatorError) -> TokenTrust {
        let trust = TokenTrust(key: try tokenKey(), environment: environment)
        for (name, count, topic, environment) in [
            ("tokens.txt", count, self.topic, environment),
            (
                "tokens-other-environment.txt", min(count, Self.foreignTokens), self.topic,
                environment.other
            ),
            (
                "tokens-other-topic.txt", min(count, Self.foreignTokens), config.other_topic,
                environment
            ),
        ] {
            let topic = Array(topic.utf8)
            try PrivateFile.write(file(name), mode: 0o644) { append throws(SimulatorError) in
                for device in 0..<count {
                    let token = trust.issue(
                        device: UInt64(device), topic: topic, environment: environment)
                    try append(Self.line(token))
                }
            }
        }
        return trust
    }

    private func tokenKey() throws(SimulatorError) -> [UInt8] {
        let path = file("token.key")
        if unsafe access(path, F_OK) != 0 {
            try PrivateFile.write(
                path, randomBytes(AuthenticatedCipher.keyCount), mode: 0o600)
        }
        let key = try PrivateFile.read(path, option: "--state")
        guard key.count == AuthenticatedCipher.keyCount else {
            throw SimulatorError(
                "\(path): no key of \(AuthenticatedCipher.keyCount) octets: remove it to have it "
                    + "made anew",
                exitCode: 2)
        }
        return key
    }

    private static func line(_ token: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var line: [UInt8] = []
        line.reserveCapacity(2 * token.count + 1)
        for octet in token {
            line.append(digits[Int(octet >> 4)])
            line.append(digits[Int(octet & 15)])
        }
        line.append(0x0a)
        return line
    }
}
