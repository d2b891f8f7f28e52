import Broadside
import BroadsideSupport
import CBroadsideNghttp2

extension SimulatedServer {
    /// A request's headers are complete. From now on, the application knows of the request.
    func headersArrived(_ stream: Int32) {
        guard let headers = streams[stream]?.headers else { return }
        requests += 1
        guard let request = simulation.checkHeaders(headers, link: link) else { return }
        let fate =
            hostileFate()
            ?? faults.fate(
                token: request.token, copy: simulation.plan.list.hasCopies ? request.row : 0,
                authorization: request.authorization, random: &random)
        streams[stream]?.fate = fate
        streams[stream]?.copy = simulation.journal.arrived(
            row: request.row, link: link, stream: stream, tokenIssued: request.tokenIssued,
            simulation: simulation)
        switch fate {
        case .refuse:
            act(.refuse(stream: stream), within: faults.answerDelay)
        case .earlyAnswer(let answer):
            streams[stream]?.answer = answer
            act(.answer(stream: stream), within: 0)
        case .answer, .reset, .silence, .half:
            break
        }
        if faults.limits != nil {
            simulation.schedule(.feed(stream: stream), link: link, after: 0)
        } else if faults.initialWindow < 65_535 {
            starve(stream)
        }
        starveIfDue()
        if faults.requestsPerConnection > 0, requests == faults.requestsPerConnection {
            simulation.schedule(.goAway(closesAfter: 0), link: link, after: 0)
        }
    }

    /// Opens a small window in steps, so that the body that it cuts off can continue.
    private func starve(_ stream: Int32) {
        let missing = expectedCount(stream) - Int(faults.initialWindow)
        guard missing > 0 else { return }
        var opened = 0
        var delay: UInt64 = 0
        while opened < missing {
            let step = min(missing - opened, random.between(1...max(1, missing / 2 + 1)))
            delay += random.delay(faults.windowDelay)
            simulation.schedule(.openWindow(stream: stream, count: step), link: link, after: delay)
            opened += step
        }
    }

    /// Number of bytes of the payload that a stream's request must have.
    func expectedCount(_ stream: Int32) -> Int {
        guard let copy = streams[stream]?.copy else { return simulation.plan.payload.count }
        return simulation.plan.payloadCount(row: simulation.journal.copies[copy].row)
    }

    func expectedPayload(_ stream: Int32) -> [UInt8] {
        guard let copy = streams[stream]?.copy else { return simulation.plan.payload }
        return simulation.plan.payload(row: simulation.journal.copies[copy].row)
    }

    /// A request is complete.
    func bodyArrived(_ stream: Int32) {
        streams[stream]?.isWhole = true
        guard let state = streams[stream] else { return }
        if let copy = state.copy {
            if state.body != expectedPayload(stream) {
                simulation.fail("stream \(stream) of link \(link) carries another payload")
            }
            simulation.journal.completed(copy, simulation: simulation)
        }
        switch state.fate {
        case .answer(let answer):
            streams[stream]?.answer = answer
            act(.answer(stream: stream), within: faults.answerDelay)
        case .reset:
            act(.reset(stream: stream), within: faults.answerDelay)
        case .half(_, let answer):
            streams[stream]?.answer = answer
            act(.answerInPart(stream: stream), within: faults.answerDelay)
        case .silence:
            cover(.silent, stream)
        case .earlyAnswer, .refuse, nil:
            break
        }
    }

    private func act(_ act: ServerAct, within limit: UInt64) {
        let delay = limit == 0 ? 0 : limit / 2 + random.skewedDelay(limit)
        simulation.schedule(act, link: link, after: delay)
    }

    /// Schedules the return of the connection's window credit. All bytes received by then are
    /// credited together.
    func owe(_ count: Int) {
        if faults.windowLoss > 0, random.chance(faults.windowLoss) { return }
        if isStarving, case .window = starvation?.cause { return }
        if owed == 0 {
            simulation.schedule(
                .giveBackWindow, link: link, after: random.delay(faults.windowDelay))
        }
        owed += count
    }

    private func openWindow(stream: Int32, count: Int) {
        guard stream == 0 || streams[stream] != nil else { return }
        nghttp2_submit_window_update(session, 0, stream, Int32(count))
    }

    /// Performs a scheduled act.
    func perform(_ act: ServerAct) {
        if case .answer(let stream) = act { ambush(stream) }
        cover(act)
        switch act {
        case .answer(let stream):
            answer(stream)
        case .answerInPart(let stream):
            answerInPart(stream)
        case .refuse(let stream):
            guard streams[stream] != nil else { return }
            nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_REFUSED_STREAM.rawValue)
        case .reset(let stream):
            guard streams[stream] != nil else { return }
            highestProcessed = max(highestProcessed, stream)
            let code = random.pick([
                NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM,
            ])
            nghttp2_submit_rst_stream(session, 0, stream, code.rawValue)
        case .openWindow(let stream, let count):
            openWindow(stream: stream, count: count)
        case .feed(let stream):
            feed(stream)
        case .announce(let id, let value):
            // A starved connection stays starved.
            guard !isStarving else { return }
            announce(nghttp2_settings_id(rawValue: id), value)
        case .giveBackWindow:
            openWindow(stream: 0, count: owed)
            owed = 0
        case .announceEnd:
            guard !hasSaidGoAway else { break }
            nghttp2_submit_shutdown_notice(session)
        case .goAway(let closesAfter):
            goAway(closesAfter: closesAfter)
        case .raiseGoAway:
            raiseGoAway()
        case .disown:
            disown()
        case .changeSettings:
            changeSettings()
        case .close:
            simulation.serverCloses(link: link, errno: 0)
            return
        case .resetConnection:
            simulation.serverCloses(link: link, errno: 104)
            return
        case .fallSilent:
            simulation.fallSilent(link: link)
            return
        case .stall(let duration):
            simulation.stall(link: link, for: duration)
            return
        case .halfClose:
            isMute = true
            simulation.serverEndsSending(link: link)
            return
        case .violate:
            violate()
        case .answerTwice:
            if let bytes = secondAnswer() { misbehave(bytes, isSure: false) }
        }
        pump()
    }

    private func answer(_ stream: Int32) {
        guard let state = streams[stream], !state.isAnswered, let answer = state.answer else {
            return
        }
        streams[stream]?.isAnswered = true
        highestProcessed = max(highestProcessed, stream)
        if answer.status != 403 { isGateOpen = true }
        if random.chance(faults.duplicate) {
            simulation.schedule(
                .answerTwice, link: link, after: random.skewedDelay(10 * millisecond))
        }
        submit(fields(answer, of: stream), hasBody: answer.reason != nil, stream: stream)
    }

    /// The headers of a response.
    func fields(_ answer: ServerAnswer, of stream: Int32) -> [(String, String)] {
        var fields: [(String, String)] = [(":status", "\(answer.status)")]
        let name = Array("apns-id".utf8)
        let identifier = streams[stream]?.headers.first { $0.name == name }
        fields.append(("apns-id", String(decoding: identifier?.value ?? [], as: UTF8.self)))
        if let retryAfter = answer.retryAfter { fields.append(("retry-after", "\(retryAfter)")) }
        if answer.reason != nil { fields.append(("content-type", "application/json")) }
        return fields
    }

    func submit(_ fields: [(String, String)], hasBody: Bool, stream: Int32) {
        var text: [UInt8] = []
        var ranges: [(Range<Int>, Range<Int>)] = []
        let tableFrom = faults.halves.tableFrom ?? 0
        let flags = responses < tableFrom ? UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : 0
        responses += 1
        for (name, value) in fields {
            let middle = text.count + name.utf8.count
            ranges.append((text.count..<middle, middle..<(middle + value.utf8.count)))
            text += Array(name.utf8) + Array(value.utf8)
        }
        text.withUnsafeMutableBufferPointer { text in
            let base = text.baseAddress!
            let list = ranges.map { name, value in
                nghttp2_nv(
                    name: base + name.lowerBound, value: base + value.lowerBound,
                    namelen: name.count, valuelen: value.count, flags: flags)
            }
            var provider = nghttp2_data_provider()
            provider.read_callback = { _, stream, buffer, count, flags, _, context in
                Unmanaged<SimulatedServer>.fromOpaque(context!).takeUnretainedValue()
                    .readBody(stream, buffer!, count, flags!)
            }
            if hasBody {
                nghttp2_submit_response(session, stream, list, list.count, &provider)
            } else {
                nghttp2_submit_response(session, stream, list, list.count, nil)
            }
        }
    }

    private func readBody(
        _ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ room: Int,
        _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        guard let state = streams[stream], let body = state.answer?.body else { return 0 }
        let rest = body.dropFirst(state.answerOffset)
        let left = (state.bodyLimit ?? body.count) - state.answerOffset
        if state.bodyLimit != nil, left == 0 { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        let most = min(rest.count, left)
        let count = min(room, random.chance(0.2) ? random.between(1...most) : most)
        for (index, byte) in rest.prefix(count).enumerated() { buffer[index] = byte }
        streams[stream]?.answerOffset += count
        if count == rest.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }

    private func goAway(closesAfter: UInt64?) {
        guard !hasSaidGoAway else { return }
        // Requests with a response were processed. Any number of the later ones were not.
        var last = nghttp2_session_get_last_proc_stream_id(session)
        let open = order.filter { $0 > highestProcessed }
        if !open.isEmpty, random.chance(0.6) {
            last = random.chance(0.3) ? max(0, open[0] - 2) : random.pick(open)
        }
        last = max(last, highestProcessed)
        namedLast = last
        var code = NGHTTP2_NO_ERROR
        var data: [UInt8] = []
        if random.chance(faults.goAwayError) {
            code = random.pick([
                NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM,
            ])
            data = Array(
                random.pick([
                    "", #"{"reason":"Shutdown"}"#, #"{"reason":"IdleTimeout"}"#, "too much",
                ]).utf8)
        }
        if code != NGHTTP2_NO_ERROR { simulation.cover(.goAwayError, link: link) }
        hasSaidGoAway = true
        nghttp2_submit_goaway(session, 0, last, code.rawValue, data, data.count)
        if faults.halves.raise > 0, random.chance(faults.halves.raise) {
            simulation.schedule(.raiseGoAway, link: link, after: random.skewedDelay(second / 4))
        }
        if let closesAfter { simulation.schedule(.close, link: link, after: closesAfter) }
    }

    private func changeSettings() {
        guard !isStarving else { return }
        switch random.below(3) {
        case 0:
            announce(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, random.pick([1000, 100, 10, 1]))
        case 1:
            announce(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, random.pick([65_535, 5000, 1 << 20]))
        default:
            announce(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, random.pick([0, 60, 200, 4096, 65_536]))
        }
    }
}
