import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

/// Notices changes in a run that operators should read about, and creates one event per change. It
/// remembers the changes noticed so far, and writes nothing.
struct RunNotices {
    private let coordinator: RunCoordinator
    private let services: ReactorServices
    private let passes: RunPasses
    private let list: InputName
    /// Longest wait for a response, nanoseconds.
    private let requestTimeout: UInt64

    private var tokenVersion: UInt32
    /// Number of retries that were reported.
    private var reportedRetries: UInt64 = 0
    /// Time at which the next report about retries is due.
    private var nextRetries: UInt64
    private var didReportStop = false
    /// Whether the stop that was reported is only the end of a pass.
    private var didReportPassEnd = false
    /// Number of stopped topics that were reported.
    private var reportedTopics = 0
    /// Whether the current stall of the list's disk was reported.
    private var didReportStall = false
    /// Whether the wait for a new provider token was reported.
    private var didReportHeldToken = false

    /// Duration after which a read of the list is reported as stalled.
    private static var listPatience: UInt64 { 5 * second }
    /// Interval over which retries are summed up.
    private static var retriesInterval: UInt64 { 10 * second }

    init(
        _ plan: Plan, _ coordinator: RunCoordinator, _ services: ReactorServices,
        _ passes: RunPasses, list: InputName, start: Now
    ) {
        self.coordinator = coordinator
        self.services = services
        self.passes = passes
        self.list = list
        requestTimeout = plan.options.requestTimeout
        tokenVersion = coordinator.authorizationVersion
        nextRetries = start.nanoseconds + Self.retriesInterval
    }

    /// Returns the events since the last call: events of the reactors, a new provider token, the
    /// stop of the run, and sums of retries.
    ///
    /// - Parameter snapshot: The latest sample.
    /// - Parameter retries: Number of retries in that sample, without those that `--retry` or
    ///   `--on-lost` asked for.
    mutating func events(
        _ snapshot: RunSnapshot, retries: UInt64, _ now: Now
    ) -> [RunEvent] {
        let new = services.takeEvents()
        var events = new.events
        if new.lost > 0 {
            events.append(
                RunEvent(
                    .eventsLost, "\(new.lost) more events on connections were not recorded", now,
                    .counting(new.lost)))
        }
        let token = coordinator.tokenInUse
        if token.version != tokenVersion {
            assert(token.version > tokenVersion, "a new provider token has a higher version")
            tokenVersion = token.version
            events.append(Self.tokenChange(returnedUntil: token.returnedUntil, now))
        }
        if coordinator.isStopping, !didReportStop || didReportPassEnd && !passes.endsEarly {
            didReportStop = true
            didReportPassEnd = passes.endsEarly
            events.append(stop(snapshot.counts, now))
        }
        if let sum = sum(of: retries, now) { events.append(sum) }
        return events
    }

    /// Returns the event of another provider token.
    ///
    /// - Parameter returnedUntil: Earliest time at which the token is replaced, seconds since 1970,
    ///   if APNs refused its successor; nil if the token is new.
    static func tokenChange(returnedUntil: UInt64?, _ now: Now) -> RunEvent {
        guard let returnedUntil else {
            return RunEvent(.tokenRenewed, "a new provider token is in use", now)
        }
        return RunEvent(
            .tokenHeld, .warning,
            "the previous provider token is in use again until \(timeText(returnedUntil * 1000)), "
                + "because APNs responded TooManyProviderTokenUpdates to the new one: do other senders "
                + "sign tokens with the same key?",
            milliseconds: now.wallMilliseconds)
    }

    /// Returns warnings about obstacles that have begun: the list's disk hangs, or APNs accepts no
    /// new provider token.
    mutating func obstacles(_ now: Now) -> [RunEvent] {
        [stall(now), heldToken(now)].compactMap(\.self)
    }

    /// Returns a warning about topics that a guard has stopped; nil if no further topic was
    /// stopped.
    mutating func stoppedTopics(_ topics: [TopicReport]?, _ now: Now) -> RunEvent? {
        let stopped = TopicReport.stopped(topics)
        assert(stopped.count >= reportedTopics, "a topic stays stopped for the whole run")
        guard stopped.count > reportedTopics else { return nil }
        reportedTopics = stopped.count
        return RunEvent(
            .topicStopped, .warning, "nothing more is sent to \(TopicReport.text(stopped))",
            milliseconds: now.wallMilliseconds)
    }

    private var stopCause: StopCause? { passes.passStop(coordinator.stopCause) }

    private func stop(_ counts: RowCounts, _ now: Now) -> RunEvent {
        let record = stopCause.map {
            StopRecord($0, wasAnswered: coordinator.lastResponse != nil)
        }
        var fields = RunEvent.Fields()
        fields.cause = record?.kind
        fields.status = record?.status
        fields.reason = record?.reason.map { printable($0) }
        fields.counts = counts
        return RunEvent(.stopping, "no new requests: \(stoppingText)", now, fields)
    }

    /// Text about the cause of the stop, and about the responses that the run still waits for.
    private var stoppingText: String {
        let cause = passes.stoppingText(stopCause)
        let inFlight = services.report.statistics.inFlight
        guard inFlight > 0, !coordinator.isStoppingAtOnce else { return cause }
        return
            "\(cause); \(grouped(UInt64(inFlight))) in flight, so waiting up to "
            + "\(requestTimeout / second) s for responses; a second signal (Ctrl-C) ends the run at "
            + "once, and rows in flight become unknown"
    }

    private mutating func sum(of retries: UInt64, _ now: Now) -> RunEvent? {
        assert(retries >= reportedRetries, "retries of a run are counted up")
        guard now.nanoseconds >= nextRetries else { return nil }
        nextRetries = now.nanoseconds + Self.retriesInterval
        let new = retries - reportedRetries
        reportedRetries = retries
        guard new > 0 else { return nil }
        var text =
            "\(counted(new, "request")) \(new == 1 ? "was" : "were") sent again in the last "
            + "\(Self.retriesInterval / second) s"
        var fields = RunEvent.Fields.counting(new)
        if let pushback = coordinator.lastPushback,
            pushback.nanoseconds + Self.retriesInterval > now.nanoseconds
        {
            text += pushback.text
            fields.status = pushback.response.status
            fields.reason = pushback.response.reasonText.map { printable($0) }
        }
        return RunEvent(.retries, text, now, fields)
    }

    /// Warns once per read that the list's disk hangs and blocks the run.
    private mutating func stall(_ now: Now) -> RunEvent? {
        let isSilent = services.readTime(now) >= Self.listPatience
        defer { didReportStall = isSilent }
        guard isSilent, !didReportStall else { return nil }
        return RunEvent(
            .listSilent, .warning,
            "\(list): one read has taken \(Self.listPatience / second) s so far: does its disk or "
                + "network file system respond?", milliseconds: now.wallMilliseconds)
    }

    /// Warns that the run waits, for up to 20 minutes, until APNs accepts a new provider token.
    private mutating func heldToken(_ now: Now) -> RunEvent? {
        let until = coordinator.tokenBlockedUntil(now)
        defer { didReportHeldToken = until != nil }
        guard let until, !didReportHeldToken else { return nil }
        return RunEvent(
            .tokenHeld, .warning,
            "no request is made until \(timeText(until * 1000)), because APNs responded "
                + "TooManyProviderTokenUpdates and the previous provider token is "
                + "too old: do other senders sign tokens with the same key?",
            milliseconds: now.wallMilliseconds)
    }
}

extension Pushback {
    /// Text about the response, to append to a message.
    var text: String { " (last refusal: \(response.text))" }
}

extension RunEvent {
    /// Creates a notice.
    init(_ kind: Kind, _ message: String, _ now: Now, _ fields: Fields = Fields()) {
        self.init(kind, .notice, message, milliseconds: now.wallMilliseconds, fields: fields)
    }
}
