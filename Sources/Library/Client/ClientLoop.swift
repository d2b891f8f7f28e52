import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
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
    /// Time until which no connection is opened, monotonic nanoseconds.
    private var pausedUntil: UInt64 = 0
    private var connections: [ClientConnection] = []
    /// The pushes that are not sent yet, in order.
    private var waiting: [PushRequest] = []
    private var firstWaiting = 0
    private var isClosed = false
    /// Time of the next check for pushes that have waited too long, monotonic nanoseconds.
    private var nextCheck: UInt64 = 0

    /// Interval between checks for pushes that have waited too long, nanoseconds.
    private static var checkInterval: UInt64 { 50 * millisecond }
    /// The pause after all addresses have failed, nanoseconds.
    private static var pause: UInt64 { second }

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
            dispatch()
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
        authorization = credential.authorization
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
    private func dispatch() {
        for connection in connections where connection.isUsable {
            while let request = takeWaiting() {
                guard connection.send(request, authorization: authorization.value) else {
                    putBack(request)
                    break
                }
            }
        }
    }

    /// Ends pushes that have waited too long, and removes pushes whose tasks were cancelled.
    private func expire(_ now: UInt64) {
        guard now >= nextCheck else { return }
        nextCheck = now + Self.checkInterval
        for connection in connections { connection.check(now) }
        guard waiting[firstWaiting...].contains(where: { now >= $0.deadline || $0.isFinished })
        else { return }
        let rest = waiting[firstWaiting...].filter { request in
            guard now >= request.deadline || request.isFinished else { return true }
            end(
                request,
                .failure(
                    CampaignError(
                        .unavailable,
                        "the push was not sent within \(options.timeout), because the server accepts requests "
                            + "too slowly: try again, or raise ClientOptions.timeout")))
            return false
        }
        waiting = rest
        firstWaiting = 0
    }

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
            for outcome in connection.takeOutcomes() { settle(outcome, connection, now) }
        }
        for connection in connections where connection.isClosed {
            if let failure = connection.failure { note(failure) }
            guard !connection.wasOpen else { continue }
            connectionFailed(connection.failure ?? "closed", now.nanoseconds)
        }
        connections.removeAll { $0.isClosed }
    }

    private func settle(
        _ outcome: ClientConnection.Outcome, _ connection: ClientConnection, _ now: Now
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
            putBack(request)
        case .response(let request, let status, let body, let reason, let uniqueID):
            let response = ResponseClass.classify(status: status, body: body)
            if response.connection != .none { connection.drain() }
            if response.row == .retryWithRenewedToken,
                request.attempts < PushRequest.attemptsLimit,
                authorization.renewAfterExpiry(now.wallMilliseconds / 1000)
            {
                return putBack(request)
            }
            end(
                request,
                .success(
                    PushResponse(
                        id: request.id, status: Int(status), reason: reason,
                        unregisteredAt: body.timestampMilliseconds.map(Date.init(milliseconds:)),
                        meaning: PushResponse.Meaning(response), uniqueID: uniqueID)))
        }
    }

    // MARK: Connections

    private func openConnection(_ now: UInt64) {
        takeAddresses(now)
        guard waitingCount > 0, now >= pausedUntil, !connections.contains(where: \.isConnecting)
        else { return }
        let usable = connections.filter(\.isUsable)
        guard usable.count < options.connectionsLimit, usable.allSatisfy(\.isFull) else { return }
        guard nextAddress < addresses.count else { return resolve(now) }
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
            failWaiting(error.message, now)
        }
    }

    private func takeAddresses(_ now: UInt64) {
        guard isResolving, let result = resolver.take() else { return }
        isResolving = false
        nextAddress = 0
        switch result {
        case .success(let found): addresses = found
        case .failure(let error): failWaiting(error.message, now)
        }
    }

    /// Continues with the next address. If there is none, the waiting pushes fail.
    private func connectionFailed(_ message: String, _ now: UInt64) {
        nextAddress += 1
        guard nextAddress >= addresses.count else { return }
        failWaiting(message, now)
    }

    private func failWaiting(_ message: String, _ now: UInt64) {
        pausedUntil = now + Self.pause
        addresses = []
        nextAddress = 0
        guard !connections.contains(where: \.isUsable) else { return }
        let error = CampaignError(
            .unavailable,
            "\(Route.hostAndPort(route.host, route.port)) can't be reached: \(message)")
        while let request = takeWaiting() { end(request, .failure(error)) }
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
