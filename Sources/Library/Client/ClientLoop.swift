import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideHTTP2
import BroadsideRing
import BroadsideSupport
internal import FoundationEssentials
internal import Glibc

/// The work of a client's thread: it opens and ends connections, and sends pushes.
final class ClientLoop {
    private let queue: PushQueue
    private let options: ClientOptions
    private let route: Route
    private let authority: [UInt8]
    private let hasProviderToken: Bool
    private var configuration: TLSConfigurationBox.Value
    private var authorization: ClientAuthorization
    private let resolver: BackgroundWorker<Void, Result<[SocketAddress], BroadsideError>>
    private var isResolving = false
    private var addresses: [SocketAddress] = []
    private var nextAddress = 0
    private var pause = ServerPause()
    private let connectRate = ConnectRateLimiter()
    private var connections: [ClientConnection] = []
    /// The pushes that are not sent yet, in order.
    private var waiting: [PushRequest] = []
    private var firstWaiting = 0
    private var isClosed = false
    /// Time of the next check for pushes that have waited too long, monotonic nanoseconds.
    private var nextCheck: UInt64 = 0

    /// Interval between checks for pushes that have waited too long, nanoseconds.
    private static var checkInterval: UInt64 { 50 * millisecond }
    /// Limit on connections that await their last responses, besides the usable ones.
    private static let drainingLimit = 10

    init(_ queue: PushQueue, _ options: ClientOptions, _ credential: ClientCredential) {
        self.queue = queue
        self.options = options
        let route = credential.route
        self.route = route
        configuration = credential.configuration
        authorization = credential.authorization
        hasProviderToken = authorization.value != nil
        let host = route.host.contains(":") ? "[\(route.host)]" : route.host
        authority = Array((route.port == 443 ? host : "\(host):\(route.port)").utf8)
        resolver = BackgroundWorker { [queue, route] _ in
            defer { queue.wake() }
            let (name, port) = route.nameToResolve
            do {
                return .success(try Resolver.resolve(name, port: port))
            } catch {
                return .failure(BroadsideError("\(error)", exitCode: ExitCode.failure))
            }
        }
    }

    /// Runs until the client is closed and no push waits for a response.
    func run() {
        while true {
            let new = queue.takeNew()
            waiting += new.requests
            isClosed = new.isClosed
            if let credential = new.credential { replace(credential) }
            let now = Clock.now()
            authorization.renew(now.wallMilliseconds / 1000)
            expire(now.nanoseconds)
            dispatch(now.nanoseconds)
            openConnection(now.nanoseconds)
            for connection in connections { connection.flush() }
            settle(now)
            if isClosed, waitingCount == 0, connections.allSatisfy({ $0.inFlight == 0 }) { break }
            waitForEvents(now)
        }
        for connection in connections { connection.end() }
        queue.finish()
    }

    /// Sends further requests with another credential, over new connections.
    private func replace(_ credential: ClientCredential) {
        assert(credential.route.port == route.port && credential.route.host == route.host)
        assert((credential.authorization.value != nil) == hasProviderToken, "the kind stays")
        configuration = credential.configuration
        authorization.replace(with: credential.authorization)
        pause = ServerPause()
        for connection in connections { connection.drain() }
    }

    private var waitingCount: Int { waiting.count - firstWaiting }

    private func takeWaiting() -> PushRequest? {
        while firstWaiting < waiting.count {
            let request = waiting[firstWaiting]
            firstWaiting += 1
            // Pushes that were taken are removed once they are half of the array.
            if firstWaiting * 2 >= waiting.count {
                waiting.removeFirst(firstWaiting)
                firstWaiting = 0
            }
            if !request.isFinished { return request }
            queue.release(1)
        }
        return nil
    }

    private func putBack(_ request: PushRequest) {
        if firstWaiting > 0 {
            firstWaiting -= 1
            waiting[firstWaiting] = request
        } else {
            waiting.insert(request, at: 0)
        }
    }

    /// Writes as many requests as the connections have room for.
    private func dispatch(_ now: UInt64) {
        guard !pause.isOutage || now >= pause.end else { return }
        for connection in connections where connection.isUsable {
            while mayBegin, let request = takeWaiting() {
                guard connection.send(request, authorization: authorization.value, now: now) else {
                    putBack(request)
                    break
                }
            }
        }
    }

    /// Whether a request may begin. After an outage, one alone tests the server.
    private var mayBegin: Bool {
        !pause.isOutage || connections.allSatisfy { !$0.isUsable || $0.inFlight == 0 }
    }

    /// Ends pushes that have waited too long, and removes pushes whose tasks were cancelled.
    private func expire(_ now: UInt64) {
        guard now >= nextCheck else { return }
        nextCheck = now + Self.checkInterval
        for connection in connections { connection.check(now) }
        guard waiting[firstWaiting...].contains(where: { now >= $0.sendBy || $0.isFinished })
        else { return }
        let cause = causeOfWaiting
        let rest = waiting[firstWaiting...].filter { request in
            guard now >= request.sendBy || request.isFinished else { return true }
            end(
                request,
                .failure(
                    CampaignError(
                        .unavailable,
                        "the push was not sent within \(options.timeout), because \(cause): try "
                            + "again later, or raise ClientOptions.timeout")))
            return false
        }
        waiting = rest
        firstWaiting = 0
    }

    /// Reason why pushes wait.
    private var causeOfWaiting: String {
        if let trouble = pause.trouble { return trouble }
        if connections.contains(where: \.isSilent) {
            return "a connection to \(server) was silent, and does not respond to a PING"
        }
        return connections.contains(where: \.isOpen)
            ? "the server accepts requests too slowly"
            : "no connection to \(server) could be opened"
    }

    /// Host and port, for messages.
    private var server: String { Route.hostAndPort(route.host, route.port) }

    private func end(_ request: PushRequest, _ outcome: PushRequest.Outcome) {
        // The push is released first. Otherwise it could still count as awaited when its task
        // continues.
        queue.release(1)
        request.finish(outcome)
    }

    // MARK: Responses

    /// Ends pushes with the outcomes that the connections report, and removes connections that have
    /// ended.
    private func settle(_ now: Now) {
        for connection in connections {
            var again: [PushRequest] = []
            for outcome in connection.takeOutcomes() { settle(outcome, connection, now, &again) }
            for request in again.sorted(by: { $0.streamID > $1.streamID }) { putBack(request) }
        }
        for connection in connections where connection.isClosed {
            guard let failure = connection.failure else { continue }
            note(failure)
            if !connection.wasOpen {
                connectionFailed(failure, now.nanoseconds)
            } else if connection.isTrouble {
                restAddresses("a connection to \(server) ended: \(failure)", now.nanoseconds)
            }
        }
        connections.removeAll { $0.isClosed }
    }

    /// - Parameter again: Pushes to send again.
    private func settle(
        _ outcome: ClientConnection.Outcome, _ connection: ClientConnection, _ now: Now,
        _ again: inout [PushRequest]
    ) {
        switch outcome {
        case .lost(let request):
            end(
                request,
                .failure(
                    CampaignError(
                        .responseLost,
                        "the response was lost, and the device may have the notification"
                            + (connection.failure.map { ": \($0)" } ?? ""))))
        case .notProcessed(let request):
            guard request.attempts < PushRequest.attemptsLimit else {
                return end(
                    request,
                    .failure(
                        CampaignError(
                            .unavailable,
                            "the server refused \(request.attempts) streams for the push: try again "
                                + "later")))
            }
            again.append(request)
        case .response(let request, let response):
            let meaning = ResponseClass.classify(status: response.status, body: response.body)
            let isRepeated = hasOtherToken(request, meaning, now)
            if meaning.connection == .none {
                pause.succeed(now: now.nanoseconds)
            } else {
                if !isRepeated, !connection.isDraining { pauseAfter(response, now) }
                connection.drain()
            }
            if isRepeated { return again.append(request) }
            end(
                request,
                .success(
                    PushResponse(
                        id: request.id, status: Int(response.status), reason: response.reason,
                        unregisteredAt: response.body.timestampMilliseconds
                            .map(Date.init(milliseconds:)),
                        meaning: PushResponse.Meaning(meaning), uniqueID: response.uniqueID)))
        }
    }

    /// Whether a push is sent again because APNs refused its provider token, and another token is in
    /// use now.
    private func hasOtherToken(
        _ request: PushRequest, _ meaning: ResponseClass, _ now: Now
    ) -> Bool {
        let nowSeconds = now.wallMilliseconds / 1000
        let isOther =
            switch meaning.row {
            case .retryWithRenewedToken:
                authorization.renewAfterExpiry(of: request.authorization, nowSeconds)
            case .retryWithPreviousToken:
                authorization.freeze(after: request.authorization, nowSeconds)
            default: false
            }
        return isOther && request.attempts < PushRequest.attemptsLimit
    }

    private func pauseAfter(_ response: ClientConnection.Response, _ now: Now) {
        let retryAfter = response.retryAfter.seconds(from: now.wallMilliseconds / 1000)
        pause.begin(
            after: "\(server) responds \(response.status)"
                + (response.reason.map { " " + $0 } ?? ""),
            isOutage: true, retryAfter: retryAfter.map { $0 * second }, now: now.nanoseconds,
            draw: .random(in: 0...(.max)))
    }

    // MARK: Connections

    private func openConnection(_ now: UInt64) {
        takeAddresses(now)
        guard waitingCount > 0, now >= pause.end, !connections.contains(where: \.isConnecting)
        else { return }
        let usable = connections.filter(\.isUsable)
        guard usable.count < options.connectionsLimit, usable.allSatisfy(\.isFull),
            connections.count - usable.count < Self.drainingLimit
        else { return }
        guard nextAddress < addresses.count else { return resolve(now) }
        guard connectRate.reserve(now: now) == nil else { return }
        do throws(BroadsideError) {
            let connection = try ClientConnection(
                to: addresses[nextAddress], configuration, authority: authority,
                hasProviderToken: hasProviderToken, now: now)
            connections.append(connection)
        } catch {
            connectionFailed(error.message, now)
        }
    }

    private func resolve(_ now: UInt64) {
        guard !isResolving else { return }
        do throws(BroadsideError) {
            try resolver.put(())
            isResolving = true
        } catch {
            restAddresses(unreachable(error.message), now)
        }
    }

    private func takeAddresses(_ now: UInt64) {
        guard isResolving, let result = resolver.take() else { return }
        isResolving = false
        nextAddress = 0
        switch result {
        case .success(let found): addresses = found
        case .failure(let error): restAddresses(unreachable(error.message), now)
        }
    }

    /// Continues with the next address. If there is none, the client pauses.
    private func connectionFailed(_ message: String, _ now: UInt64) {
        nextAddress += 1
        guard nextAddress >= addresses.count else { return }
        restAddresses(unreachable(message), now)
    }

    private func unreachable(_ message: String) -> String {
        "\(server) can't be reached: \(message)"
    }

    /// Opens no connection for a while, and then resolves the name again. Pushes wait.
    private func restAddresses(_ trouble: String, _ now: UInt64) {
        pause.begin(after: trouble, isOutage: false, now: now, draw: .random(in: 0...(.max)))
        addresses = []
        nextAddress = 0
    }

    private func note(_ failure: String) {
        options.logger?.log(
            RunLogEntry(line: "broadside: warning: a connection ended: \(failure)"))
    }

    // MARK: Waiting

    /// Waits for an event of a connection or a task.
    private func waitForEvents(_ now: Now) {
        let isBusy = waitingCount > 0 || connections.contains { $0.inFlight > 0 || $0.isConnecting }
        var waited = [pollfd(fd: queue.descriptor, events: Int16(POLLIN), revents: 0)]
        for connection in connections {
            waited.append(
                pollfd(fd: connection.descriptor, events: connection.wantedEvents, revents: 0))
        }
        guard SystemCall.poll(&waited, isBusy ? 100 : 10_000) > 0 else { return }
        if waited[0].revents != 0 { SystemCall.readCounter(queue.descriptor) }
        let woken = Clock.now()
        for (connection, result) in zip(connections, waited.dropFirst()) where result.revents != 0 {
            connection.move(result.revents, now: woken.nanoseconds)
        }
        settle(woken)
    }
}
