import BroadsideHTTP2
import BroadsidePolicy
import BroadsideSupport

/// The exchange of a reactor with its run: effects go out, directives come in.
extension ReactorStateMachine where Records: ~Copyable {
    /// Hands over effects and takes directives at the start of an iteration.
    mutating func exchangeWithRun(_ now: Now) {
        reportAccepted(now)
        if run.directives.isCanaryPending { run.report(metrics.takeCanaryProgress()) }
        run.exchange(permits: permitsWanted, inFlight: rows.inFlight, now)
        if run.directives.keyVersion != connections.keyVersion { drainForNewKey(now) }
        handleExpiredTokens(now)
    }

    /// Hands over the effects of the iteration at its end.
    mutating func finishIteration(_ now: Now) {
        reportAccepted(now)
        if run.directives.isCanaryPending { run.report(metrics.takeCanaryProgress()) }
        run.finishIteration(inFlight: rows.inFlight, now)
        handleExpiredTokens(now)
        assert(brokenInvariant == nil, brokenInvariant ?? "")
    }

    /// Reports rows accepted since the last call. Guards count responses in order, so accepted rows
    /// are reported before any other response.
    mutating func reportAccepted(_ now: Now) {
        guard metrics.acceptedSinceReport > 0 else { return }
        assert(
            writer.topics == nil
                || metrics.topicsAccepted.reduce(0) { $0 + Int($1) } == metrics.acceptedSinceReport,
            "each acceptance is counted for its topic")
        run.append(.accepted(metrics.acceptedSinceReport))
        if writer.topics != nil { reportTopics() }
        run.recordResponse(now)
        metrics.acceptedSinceReport = 0
    }

    /// Reports accepted rows by topic.
    @inline(never)
    private mutating func reportTopics() {
        for topic in metrics.topicsAccepted.indices where metrics.topicsAccepted[topic] > 0 {
            run.append(
                .topicAccepted(Int(metrics.topicsAccepted[topic]), topic: UInt8(topic)))
            metrics.topicsAccepted[topic] = 0
        }
    }

    /// Counts a connection that ended with a protocol error of the server. Too many of these end
    /// the run.
    mutating func recordProtocolError(
        _ index: Int, _ trouble: ConnectionTrouble, now: Now
    ) {
        guard connections[index].recordProtocolError() else { return }
        // Responses and errors count in order.
        reportAccepted(now)
        run.append(.broken(trouble))
    }

    /// Number of permits that the reactor needs before the first acceptance; 0 if it would send no
    /// request.
    @inline(__always)
    private var permitsWanted: Int {
        guard !run.directives.anyAccepted, case .running = phase, hasWork, connections.hasReady
        else { return 0 }
        return max(1, settings.abortAfter / settings.reactors)
    }

    /// Number of requests that the reactor may send before the first acceptance. It is small and
    /// falls with each refusal, so that a wrong setting costs little.
    var initialAllowance: Int {
        run.directives.anyAccepted ? .max : max(0, run.directives.permits - rows.inFlight)
    }

    // MARK: ExpiredProviderToken

    /// Reports that a server called a provider token expired. The run decides what to do.
    ///
    /// - Parameter isFirst: Whether it is the connection's first response.
    mutating func recordExpiredToken(_ index: Int, usedVersion: UInt32, isFirst: Bool) {
        connections.expiryReports.append((index, isFirst))
        run.append(.expired(usedVersion: usedVersion, connection: connections[index].number))
    }

    /// Applies the run's decisions about expired tokens. The rows wait for another token, or for a
    /// connection to another address.
    private mutating func handleExpiredTokens(_ now: Now) {
        guard !connections.expiryReports.isEmpty else { return }
        let actions = run.takeExpiredTokens()
        assert(actions.count == connections.expiryReports.count, "each report has one action")
        for (action, (index, isFirst)) in zip(actions, connections.expiryReports) {
            let address = connections[index].address
            switch action {
            case .otherConnection:
                // The clock of this one server may be wrong. Later, a single request tests the
                // server again.
                connections.addresses.failed(
                    address, now: now.nanoseconds, retryAfter: nil, lasting: nil, isOutage: true,
                    random: &random)
            case .renewed, .fatal:
                if isFirst {
                    connections.addresses.succeeded(address, slot: index, now: now.nanoseconds)
                }
            }
        }
        connections.expiryReports.removeAll(keepingCapacity: true)
    }
}
