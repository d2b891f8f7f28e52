import BroadsideHTTP2
import BroadsidePolicy
import BroadsideSupport

/// A reactor and its run: what came in goes out as effects, what the run says comes in as directives.
extension ReactorStateMachine where Records: ~Copyable {
    /// Tells the run what came in since, and takes what holds from now on. A turn begins with it.
    mutating func exchangeWithRun(_ now: Now) {
        reportAccepted(now)
        if run.directives.isCanaryPending { run.report(metrics.takeCanaryProgress()) }
        run.exchange(permits: permitsWanted, inFlight: rows.inFlight, now)
        handleExpiredTokens(now)
    }

    /// Tells the run what the turn decided.
    mutating func finishIteration(_ now: Now) {
        reportAccepted(now)
        if run.directives.isCanaryPending { run.report(metrics.takeCanaryProgress()) }
        run.finishIteration(inFlight: rows.inFlight, now)
        handleExpiredTokens(now)
        assert(brokenInvariant == nil, brokenInvariant ?? "")
    }

    /// Tells the run of the rows that were accepted since the last time. Guards count responses in their
    /// order, so this comes before any other response is told.
    mutating func reportAccepted(_ now: Now) {
        guard metrics.acceptedSinceReport > 0 else { return }
        run.append(.accepted(metrics.acceptedSinceReport))
        run.recordResponse(now)
        metrics.acceptedSinceReport = 0
    }

    /// Counts a connection that ends by the server's protocol error; so many end the run.
    mutating func recordProtocolError(
        _ index: Int, _ trouble: ConnectionTrouble, now: Now
    ) {
        guard connections[index].recordProtocolError() else { return }
        // Responses and errors count in their order.
        reportAccepted(now)
        run.append(.broken(trouble))
    }

    /// Requests for which leave is needed before anything was accepted; 0 where none would be made.
    @inline(__always)
    private var permitsWanted: Int {
        guard !run.directives.anyAccepted, case .running = phase, hasWork, connections.hasReady
        else { return 0 }
        return max(1, settings.abortAfter / settings.reactors)
    }

    /// Requests that may be made so far as nothing was accepted yet: few, and fewer with each one that is
    /// refused, so that a wrong setting is found out at little cost.
    var initialAllowance: Int {
        run.directives.anyAccepted ? .max : max(0, run.directives.permits - rows.inFlight)
    }

    // MARK: ExpiredProviderToken

    /// A server calls the provider token of a version expired: the run says what to do about it.
    ///
    /// - Parameter isFirst: It is the connection's first response.
    mutating func recordExpiredToken(_ index: Int, usedVersion: UInt32, isFirst: Bool) {
        connections.expiredOn.append((index, isFirst))
        run.append(.expired(usedVersion: usedVersion, connection: connections[index].number))
    }

    /// Rows of such requests wait for a connection: with another token, or to another address.
    private mutating func handleExpiredTokens(_ now: Now) {
        guard !connections.expiredOn.isEmpty else { return }
        for (action, (index, isFirst)) in zip(run.takeExpiredTokens(), connections.expiredOn) {
            let address = connections[index].address
            switch action {
            case .otherConnection:
                // One server with a wrong clock: it is asked again later, by one request.
                connections.addresses.failed(
                    address, now: now.nanoseconds, retryAfter: nil, lasting: nil, isOutage: true,
                    random: &random)
            case .renewed, .fatal:
                if isFirst {
                    connections.addresses.succeeded(address, slot: index, now: now.nanoseconds)
                }
            }
        }
        connections.expiredOn.removeAll(keepingCapacity: true)
    }
}
