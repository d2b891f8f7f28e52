internal import BroadsideAPNs
internal import CBroadsideNghttp2

/// What a connection as a whole is to suffer.
enum ConnectionStrike: Equatable {
    case reset
    case close
    case stall(untilNanoseconds: UInt64)
}

/// What a scenario does to a session.
extension ServerSession {
    /// Lets the scenario strike a complete request; false where the request is not taken.
    func applyFault(
        _ run: ScenarioRun, _ stream: StreamIndex, _ response: inout Response
    ) -> Bool {
        if response.status == 200, let rate = run.scenario.tokenRate,
            let fingerprint = streams[stream].tokenFingerprint,
            !context.tokenRates.allows(fingerprint, rate, now: context.now)
        {
            response = .refused(.tooManyRequests)
        }
        guard let action = counters.next(run: run, connection: number, now: context.now) else {
            return true
        }
        context.totals.countFault(action)
        let streamID = streams[stream].streamID
        switch action {
        case .response(let other): response = other
        case .expireToken:
            if let fingerprint = credential.lastFingerprint { run.expire(fingerprint) }
            response = .refused(.expiredProviderToken)
        case .settings(let change): announce(change)
        case .refuse:
            reset(streamID, ErrorCode.refusedStream.rawValue)
            return false
        case .resetStream(let code): reset(streamID, code)
        case .goAway(let goAway):
            if goAway.isBeforeRequest { forget(stream) }
            begin(goAway, lastStream: goAway.isBeforeRequest ? streamID - 2 : streamID)
            return !goAway.isBeforeRequest
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

    /// Forgets a stream that GOAWAY says is not taken.
    private func forget(_ stream: StreamIndex) {
        session.setStream(Int32(streams[stream].streamID), nil)
        closedStream(stream)
    }

    /// Announces settings that a scenario changes.
    private func announce(_ change: SettingsChange) {
        var entries: [nghttp2_settings_entry] = []
        if let limit = change.maxStreams {
            fullLimit = limit
            announcedLimit = isGateOpen ? limit : min(1, limit)
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
        submit(limit: announcedLimit, entries)
    }

    /// Counts a refusal or an accepted notification, and does what too many refusals do.
    func weigh(_ response: Response, _ limits: RefusalLimits) {
        if response.status == 200 {
            refusalsInARow = 0
            if isGateOpen, announcedLimit < fullLimit, limits.collapseAfter != nil {
                announce(limit: fullLimit)
            }
            return
        }
        // "410 does not count"; nor is it the provider's fault when APNs is in trouble.
        guard response.status < 500, response.status != 410 else { return }
        refusalsInARow += 1
        refusalCount += response.reason == .badDeviceToken ? 2 : 1
        if let most = limits.collapseAfter, refusalsInARow >= most, announcedLimit > 1 {
            announce(limit: 1)
        }
        if let most = limits.goAwayAfter, refusalCount >= most, lastTaken == nil, goAwayDue == nil {
            // In the next turn, behind the answer: some clients read nothing after GOAWAY.
            goAwayDue = (context.now, GoAway(code: ErrorCode.enhanceYourCalm.rawValue))
        }
    }

    // MARK: GOAWAY

    /// Ends the connection in an orderly way with a reason of APNs.
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

    /// A client certificate is refused: GOAWAY, no stream taken, and the end.
    func refuseCertificate(_ reason: Reason) {
        begin(
            GoAway(debug: Array("{\"reason\":\"\(reason.text)\"}".utf8), isAbrupt: true),
            lastStream: 0)
    }

    private var lastProcessed: UInt32 {
        UInt32(session.lastProcessed)
    }

    private func begin(_ goAway: GoAway, lastStream: UInt32) {
        guard lastTaken == nil, goAwayDue == nil else { return }
        if goAway.noticeNanoseconds > 0 {
            // The highest number: requests on their way are still taken.
            injected += FrameBytes.goAway(
                lastStreamID: 0x7fff_ffff, code: goAway.code, debug: goAway.debug)
            goAwayDue = (context.now + goAway.noticeNanoseconds, goAway)
            return
        }
        lastTaken = lastStream
        session.submitGoAway(goAway.code, goAway.debug, lastStream: Int32(lastStream))
        if goAway.isAbrupt { isEnding = true }
    }

    // MARK: Time

    /// When something is due here, nanoseconds; `.max` for nothing.
    var alarm: UInt64 {
        var due = min(windowDue, goAwayDue?.at ?? .max)
        if lastTaken == nil, let idle = context.idleNanoseconds {
            due = min(due, lastRequest + idle)
        }
        return due
    }

    /// Does what is due.
    func tick() {
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

    /// Gives a portion of credit back, to the connection and to each stream that waits for more.
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
