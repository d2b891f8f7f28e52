import APNs

/// Which protocol carries a campaign.
public enum WireProtocol: String, Sendable, CaseIterable {
    /// The provider API.
    case http2
    /// The legacy gateway's binary protocol.
    case binary
}

extension Plan {
    /// The gateway's port where `--endpoint` names none.
    static let gatewayPort: UInt16 = 2195
    /// Notifications that may be out on a connection to a gateway, of which it says nothing: the
    /// more there are, the more go through while silence is waited for.
    static let gatewayWindow = 8192

    /// Said behind the endpoint where it is a legacy gateway.
    var protocolWords: String {
        guard options.wireProtocol == .binary else { return "" }
        return ", legacy gateway, command \(options.binaryCommand.rawValue)"
    }

    /// How a campaign goes to a legacy gateway; nil where it goes over HTTP/2.
    func binarySettings(expirationSeconds: UInt64?) -> BinarySettings? {
        guard options.wireProtocol == .binary else { return nil }
        return BinarySettings(
            command: options.binaryCommand,
            expiration: expirationSeconds.map { UInt32(clamping: $0) },
            priority: headers.priority.rawValue,
            silence: min(BinarySettings.defaultSilence, options.requestTimeout / 2))
    }

    /// Holds the request against what the binary protocol can carry.
    static func checkBinary(
        _ options: SendOptions, credential: Credential, payloadCount: Int
    ) throws(BroadsideError) {
        guard options.endpoint != nil else {
            throw .request(
                "--protocol binary needs --endpoint HOST:PORT: Apple switched its own gateways off "
                    + "in 2021")
        }
        guard case .certificate = credential else {
            throw .request(
                "--protocol binary needs --certificate FILE: the gateway knows no provider tokens")
        }
        let command = options.binaryCommand
        guard payloadCount <= command.payloadLimit else {
            throw .request(
                "--payload has \(payloadCount) bytes, and command \(command.rawValue) of the binary "
                    + "protocol carries \(command.payloadLimit): shorten it"
                    + (command == .frame ? "" : ", or use --binary-command 2"))
        }
        if options.collapseID != nil {
            throw .request(
                "--collapse-id has no place in the binary protocol: leave it out")
        }
        if options.priority == .patient {
            throw .request("--priority 1 has no place in the binary protocol: use 10 or 5")
        }
        if options.priority == .considerate, command != .frame {
            throw .request("--priority 5 needs --binary-command 2: the others are always 10")
        }
        if options.expiration != nil, command == .simple {
            throw .request("--expiration needs --binary-command 1 or 2: command 0 carries none")
        }
    }
}
