import BroadsideSupport

/// An act of a server, some time after the bytes that caused it.
enum ServerAct {
    case answer(stream: Int32)
    /// Sends a partial or wrong response.
    case answerInPart(stream: Int32)
    case refuse(stream: Int32)
    case reset(stream: Int32)
    /// Returns the credit of the connection's window for all received bytes.
    case giveBackWindow
    /// Announces a setting.
    case announce(id: UInt32, value: UInt32)
    /// Checks a body that its stream's window may cut off.
    case feed(stream: Int32)
    /// Opens a stream's window.
    case openWindow(stream: Int32, count: Int)
    /// The first act announces the end, the second names the last stream, and the third closes the
    /// connection.
    case announceEnd
    case goAway(closesAfter: UInt64?)
    /// Names a later last stream than before.
    case raiseGoAway
    /// Declares all open requests as not processed.
    case disown
    case close
    case resetConnection
    case fallSilent
    case changeSettings
    /// Neither reads nor responds for a time.
    case stall(UInt64)
    /// Ends its sending direction, but continues to read and act.
    case halfClose
    /// Sends bytes that HTTP/2 does not allow, and nothing after them.
    case violate
    /// Sends a second, different response to the last request, and nothing after it.
    case answerTwice
}

/// A response on which a server has decided.
struct ServerAnswer {
    var status: Int
    var reason: String?
    var timestamp: UInt64?
    var retryAfter: Int?
    /// Whether a legacy gateway sends it. The status is then that of an error response.
    var isGateways = false

    static let accepted = ServerAnswer(status: 200)

    /// Whether the engine may send the row again in the same process.
    var allowsRetry: Bool {
        if isGateways { return Self.meaning(ofGateway: status) == .transient }
        return switch status {
        case 408, 421, 425, 429, 500, 503: true
        case 403: reason == "InvalidProviderToken" || reason == "ExpiredProviderToken"
        default: false
        }
    }

    /// Whether the engine leaves the row to a later process.
    var allowsRetryLater: Bool {
        if isGateways { return Self.meaning(ofGateway: status) != .rejected }
        return status == 403 || isFromOtherServer || allowsRetry
    }

    /// Whether APNs never sends such a response. APNs does not redirect, does not ask for a login,
    /// and gives a reason when it refuses a request.
    var isFromOtherServer: Bool {
        guard !isGateways else { return false }
        return switch status {
        case 300..<400, 401, 407: true
        case 404, 405: reason == nil
        default: false
        }
    }

    /// Whether the outcome is unknown. APNs never sends such a status, and a proxy may send it for
    /// a request that it passed on.
    var leavesDoubt: Bool {
        !isGateways && ((201..<300).contains(status) || status == 502 || status == 504)
    }

    var body: [UInt8] {
        guard let reason else { return [] }
        let time = timestamp.map { #","timestamp":\#($0)"# } ?? ""
        return Array(#"{"reason":"\#(reason)"\#(time)}"#.utf8)
    }
}

/// How a server treats a request.
enum Fate {
    case answer(ServerAnswer)
    /// The response comes before the request's body.
    case earlyAnswer(ServerAnswer)
    case refuse
    case reset
    case silence
    /// The kind of wrong response, and the response that the token determines.
    case half(HalfResponse, ServerAnswer)
}

extension FaultPlan {
    static let expiredToken = ServerAnswer(status: 403, reason: "ExpiredProviderToken")
    static let tooManyTokens = ServerAnswer(status: 429, reason: "TooManyProviderTokenUpdates")
    static let earlyAnswer = ServerAnswer(status: 413, reason: "PayloadTooLarge")

    /// Whether a token always gets a server error.
    private func isFaulty(_ token: [UInt8]) -> Bool {
        faultyTokens > 0
            && token.reduce(UInt64(0)) { splitmix64($0 ^ UInt64($1)) } % faultyTokens == 0
    }

    /// Decides what a server does with a request.
    func fate(
        token: [UInt8], copy: Int, authorization: [UInt8]?, random: inout SimulationRandom
    ) -> Fate {
        if let authorization, expiresTokensBefore > 0,
            let issued = UInt64(String(decoding: authorization.dropFirst(7), as: UTF8.self)),
            issued < expiresTokensBefore
        {
            return .answer(Self.expiredToken)
        }
        if let authorization, refusesTokensFrom > 0,
            let issued = UInt64(String(decoding: authorization.dropFirst(7), as: UTF8.self)),
            issued >= refusesTokensFrom
        {
            return .answer(Self.tooManyTokens)
        }
        if random.chance(refused) { return .refuse }
        if random.chance(resetStream) { return .reset }
        if random.chance(silentStream) { return .silence }
        if random.chance(busy) {
            let after = random.chance(0.3) ? random.between(1...3) : nil
            return .answer(
                ServerAnswer(status: 429, reason: "TooManyRequests", retryAfter: after))
        }
        if random.chance(trouble) {
            let after = random.chance(0.3) ? random.between(1...5) : nil
            return .answer(
                random.chance(0.5)
                    ? ServerAnswer(status: 500, reason: "InternalServerError")
                    : ServerAnswer(
                        status: 503, reason: random.pick(["ServiceUnavailable", "Shutdown"]),
                        retryAfter: after))
        }
        if isFaulty(token) {
            return .answer(ServerAnswer(status: 500, reason: "InternalServerError"))
        }
        if random.chance(credential) {
            return .answer(
                ServerAnswer(
                    status: 403, reason: random.pick(["InvalidProviderToken", "Forbidden"])))
        }
        if random.chance(strangeReason) {
            let name = hasManyReasons ? String(decoding: token.prefix(6), as: UTF8.self) : ""
            return .answer(ServerAnswer(status: 400, reason: "PhaseOfTheMoon" + name))
        }
        if random.chance(earlyAnswer) {
            return .earlyAnswer(Self.earlyAnswer)
        }
        if oddStatuses.chance > 0, random.chance(oddStatuses.chance) {
            return .answer(OddStatuses.draw(&random))
        }
        let deserved =
            refusesTokens
            ? ServerAnswer(status: 400, reason: "BadDeviceToken")
            : Self.deserved(by: token, copy: copy)
        if halves.chance > 0, random.chance(halves.chance) {
            return .half(random.pick(HalfResponse.allCases), deserved)
        }
        return .answer(deserved)
    }

    /// Response that a token determines without faults. It is always the same.
    ///
    /// - Parameter copy: Number that distinguishes copies of a token with different responses.
    static func deserved(by token: [UInt8], copy: Int) -> ServerAnswer {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ UInt64(copy) &* 0x9e37_79b9_7f4a_7c15
        for byte in token { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        switch (hash >> 20) % 100 {
        case 0..<4: return ServerAnswer(status: 400, reason: "BadDeviceToken")
        case 4..<7, 7..<(copy == 0 ? 7 : 40):
            return ServerAnswer(
                status: 410, reason: "Unregistered",
                timestamp: 1_700_000_000_000 + hash % 86_400_000)
        default: return .accepted
        }
    }
}
