internal import BroadsideAPNs
internal import CBroadsideNghttp2

/// A fault that affects a whole connection.
enum ConnectionStrike: Equatable {
    case reset
    case close
    case stall(untilNanoseconds: UInt64)
}

/// Injection of a scenario's faults into a session.
extension ServerSession {
    /// Applies the scenario to a complete request; returns false if the request is not accepted.
    func applyFault(
        _ run: ScenarioRun, _ stream: StreamIndex, _ response: inout Response
    ) -> Bool {
        if response.reason == .unregistered, let late = run.scenario.lateUnregistered,
            let fingerprint = streams[stream].tokenFingerprint,
            !late.isReported(
                fingerprint, elapsedNanoseconds: run.elapsed(context.now),
                chance: counters.chance())
        {
            response = .accepted
            // The device no longer has the app, so nothing is delivered.
            streams[stream].envelope = nil
        }
        if response.status == 200, let rate = run.scenario.tokenRate,
            let fingerprint = streams[stream].tokenFingerprint,
            !context.tokenRates.allows(fingerprint, rate, now: context.now)
        {
            response = .refused(.tooManyRequests)
        }
        guard let action = counters.next(run: run, connection: number, now: context.now) else {
            return true
        }
        // A connection gets only one GOAWAY.
        if case .goAway = action, lastTaken != nil || goAwayDue != nil { return true }
        context.totals.countFault(action)
        let streamID = streams[stream].streamID
        switch action {
        case .response(let other):
            response = other
            if response.status == 410 {
                response.timestampMilliseconds = context.nowMicroseconds / 1000
            }
        case .expireToken:
            if let fingerprint = credential.lastFingerprint { run.expire(fingerprint) }
            response = .refused(.expiredProviderToken)
        case .settings(let change): announce(change)
        case .refuse:
            reset(streamID, ErrorCode.refusedStream.rawValue)
            return false
        case .resetStream(let code): reset(streamID, code)
        case .goAway(let goAway):
            guard goAway.isBeforeRequest else {
                begin(goAway, lastStream: max(streamID, highestTaken))
                return true
            }
            let last = max(streamID < 3 ? 0 : streamID - 2, highestTaken)
            if goAway.noticeNanoseconds > 0 || last > streamID {
                // The last stream number in the GOAWAY is higher than the number of this stream.
                reset(streamID, ErrorCode.refusedStream.rawValue)
            } else {
                forget(stream)
            }
            begin(goAway, lastStream: last)
            return false
        case .resetConnection:
            strike = .reset
            isBroken = true
        case .close:
            strike = .close
            isBroken = true
        case .stall(let nanoseconds):
            strike = .stall(untilNanoseconds: nanoseconds.map { context.now + $0 } ?? .max)
        case .outage: break
        }
        return true
    }

    /// Removes the state of a stream that GOAWAY excludes.
    private func forget(_ stream: StreamIndex) {
        session.setStream(Int32(streams[stream].streamID), nil)
        closedStream(stream)
    }

    /// Removes the state of streams that GOAWAY excludes although their HEADERS have arrived.
    ///
    /// RFC 9113 section 6.8: the sender "can discard frames for streams initiated by the receiver
    /// with identifiers higher than the identified last stream", and the receiver may repeat such
    /// requests on another connection.
    private func forgetStreams(above lastStream: UInt32) {
        assert(lastStream >= highestTaken, "GOAWAY covers each processed request")
        for stream in streams.indices where streams[stream].isOpen {
            // A complete request on a stream with a higher number was refused, and its reset is
            // queued.
            guard streams[stream].streamID > lastStream, !streams[stream].isComplete else {
                continue
            }
            forget(stream)
        }
    }

    /// Announces settings that a scenario has changed.
    private func announce(_ change: SettingsChange) {
        var entries: [nghttp2_settings_entry] = []
        if let limit = change.maxStreams {
            streamLimits.announce(full: limit)
            entries.append(Self.unlimitedStreams)
        }
        for (identifier, value) in [
            (NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, change.headerTableSize),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, change.initialWindow),
            (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, change.maxFrameSize),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, change.maxHeaderListSize),
        ] {
            if let value { entries.append(Self.entry(identifier, value)) }
        }
        submit(entries)
    }

    /// Counts a response as a refusal or an acceptance. Applies the limits to a connection with too
    /// many refusals.
    func weigh(_ response: Response, _ limits: RefusalLimits) {
        if response.status == 200 {
            refusalsInARow = 0
            slowedNanoseconds -= min(slowedNanoseconds, limits.slowNanoseconds)
            if streamLimits.isAuthenticated, streamLimits.announced < streamLimits.full,
                limits.collapseAfter != nil
            {
                announce(limit: streamLimits.full)
            }
            return
        }
        // A 410 does not count as a refusal. A 5xx does not either, because the provider does not
        // cause it.
        guard response.status < 500, response.status != 410 else { return }
        refusalsInARow += 1
        let weight: UInt64 = response.reason == .badDeviceToken ? 2 : 1
        refusalCount += weight
        slowedNanoseconds = min(
            slowedNanoseconds + weight * limits.slowNanoseconds,
            RefusalLimits.maximumSlowNanoseconds)
        if let most = limits.collapseAfter, refusalsInARow >= most, streamLimits.announced > 1 {
            announce(limit: 1)
        }
        if let most = limits.goAwayAfter, refusalCount >= most, lastTaken == nil, goAwayDue == nil {
            // GOAWAY follows in the next iteration, after the response, because some clients read
            // nothing after a GOAWAY.
            goAwayDue = (context.now, GoAway(code: ErrorCode.enhanceYourCalm.rawValue))
        }
    }

    // MARK: GOAWAY

    /// Ends the connection in an orderly way with an APNs reason.
    func shutDown(_ reason: StaticString, form: DebugForm) {
        guard !isEnding, !isBroken, lastTaken == nil else { return }
        var goAway = GoAway()
        switch form {
        case .json: goAway.debug = Array("{\"reason\":\"\(reason)\"}".utf8)
        case .text: goAway.debug = Array("\(reason)".utf8)
        case .none: break
        }
        begin(
            goAway, lastStream: lastProcessed)
    }

    /// Rejects a client certificate with a GOAWAY that accepts no stream, and ends the session.
    func refuseCertificate(_ reason: Reason) {
        begin(
            GoAway(debug: Array("{\"reason\":\"\(reason.text)\"}".utf8), isAbrupt: true),
            lastStream: 0)
    }

    /// Ends a connection on which the client opened too many streams. The GOAWAY names the last
    /// processed stream. This stream and all lower streams still get their responses; all other
    /// streams are ignored.
    func exceedStreams() {
        context.totals.violations += 1
        goAwayDue = nil
        violationEnd = context.now + SimulatorLimits.violationNanoseconds
        // APNs sends exactly this text.
        let text = "Maximum active streams violated for this endpoint."
        begin(
            GoAway(code: ErrorCode.refusedStream.rawValue, debug: Array(text.utf8)),
            lastStream: highestTaken)
    }

    private var lastProcessed: UInt32 {
        UInt32(session.lastProcessed)
    }

    private func begin(_ goAway: GoAway, lastStream: UInt32) {
        guard lastTaken == nil, goAwayDue == nil else { return }
        if goAway.noticeNanoseconds > 0 {
            // GOAWAY has the highest stream number, so that requests in flight are still accepted.
            injected += FrameBytes.goAway(
                lastStreamID: 0x7fff_ffff, code: goAway.code, debug: goAway.debug)
            goAwayDue = (context.now + goAway.noticeNanoseconds, goAway)
            return
        }
        lastTaken = lastStream
        forgetStreams(above: lastStream)
        session.submitGoAway(goAway.code, goAway.debug, lastStream: Int32(lastStream))
        if goAway.isAbrupt { isEnding = true }
    }

    // MARK: Time

    /// Time at which the next work is due, nanoseconds; `.max` for none.
    var alarm: UInt64 {
        var due = min(windowDue, goAwayDue?.at ?? .max, violationEnd)
        if lastTaken == nil, let idle = context.idleNanoseconds {
            due = min(due, lastRequest + idle)
        }
        return due
    }

    /// Performs the work that is due.
    func tick() {
        if violationEnd <= context.now {
            violationEnd = .max
            isEnding = true
            return
        }
        if let due = goAwayDue, due.at <= context.now {
            goAwayDue = nil
            var goAway = due.goAway
            goAway.noticeNanoseconds = 0
            begin(
                goAway,
                lastStream: lastProcessed)
        }
        if windowDue <= context.now { returnCredit() }
        if lastTaken == nil, let idle = context.idleNanoseconds, lastRequest + idle <= context.now {
            if openStreams == 0 {
                shutDown("IdleTimeout", form: context.run?.scenario.debug ?? .json)
            } else {
                lastRequest = context.now
            }
        }
    }

    /// Returns a portion of window credit to the connection and to each stream that needs more.
    private func returnCredit() {
        guard let window else { return }
        let portion = min(uncreditedBytes, window.count)
        if portion > 0 {
            uncreditedBytes -= portion
            session.submitWindowUpdate(0, portion)
        }
        var isUncredited = uncreditedBytes > 0
        for stream in streams.indices where streams[stream].isOpen {
            let portion = min(streams[stream].uncreditedBytes, window.count)
            guard portion > 0, !streams[stream].isComplete else { continue }
            streams[stream].uncreditedBytes -= portion
            session.submitWindowUpdate(Int32(streams[stream].streamID), portion)
            isUncredited = isUncredited || streams[stream].uncreditedBytes > 0
        }
        windowDue = isUncredited ? context.now + window.intervalNanoseconds : .max
    }
}
