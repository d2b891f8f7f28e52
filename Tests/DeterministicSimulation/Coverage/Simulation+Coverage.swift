import Broadside

extension Simulation {
    /// Counts a fault of a request.
    func cover(_ fault: Fault, link id: Int, row: Int?, isWhole: Bool) {
        coverage.note(fault, condition(ofRow: row, isWhole: isWhole), condition(of: id))
    }

    /// Counts a fault of a connection, once for each condition of a row in flight on it.
    func cover(_ fault: Fault, link id: Int) {
        let connection = condition(of: id)
        for row in rowConditions(of: id) { coverage.note(fault, row, connection) }
    }

    /// Counts a fault of the process, once for each pair of conditions among its connections.
    func cover(_ fault: Fault) {
        var seen: [(RowCondition, ConnectionCondition)] = []
        for id in ownLinkIndices where links[id].isOpenAtClient {
            let connection = condition(of: id)
            for row in rowConditions(of: id)
            where !seen.contains(where: { $0 == (row, connection) }) {
                seen.append((row, connection))
            }
        }
        if seen.isEmpty { seen = [(.none, .none)] }
        for (row, connection) in seen { coverage.note(fault, row, connection) }
    }

    /// Conditions of the rows in flight on a connection. If there are many, only the first few
    /// count.
    func rowConditions(of id: Int) -> [RowCondition] {
        if let gateway = gateways[id] {
            let conditions = gateway.lastCopies.map {
                condition(ofRow: journal.copies[$0].row, isWhole: true)
            }
            return conditions.isEmpty ? [.none] : RowCondition.allCases.filter(conditions.contains)
        }
        guard let server = servers[id], !server.order.isEmpty else { return [.none] }
        var conditions: [RowCondition] = []
        for stream in server.order.prefix(8) {
            guard let state = server.streams[stream], let copy = state.copy else { continue }
            let condition = condition(ofRow: journal.copies[copy].row, isWhole: state.isWhole)
            if !conditions.contains(condition) { conditions.append(condition) }
        }
        return conditions.isEmpty ? [.none] : conditions
    }

    func condition(ofRow row: Int?, isWhole: Bool) -> RowCondition {
        guard let row else { return .none }
        if !isWhole { return .inParts }
        let copies = journal.copiesOfRow[row]
        let isResumed = copies.first.map { journal.copies[$0].epoch < process.epoch } ?? false
        if isResumed || process.statesAtStart[row] != .remaining { return .resumed }
        return copies.count > 1 ? .again : .first
    }

    func condition(of id: Int) -> ConnectionCondition {
        let link = links[id]
        if process.facts.addresses[link.address]?.isOutage == true { return .outage }
        if servers[id]?.hasSaidGoAway == true { return .leaving }
        if link.isSendBlocked { return .blocked }
        let isSilenceLong = plan.gateway != nil && clock - link.openedAt > 2 * plan.silence
        return link.responses == 0 && !isSilenceLong ? .new : .proven
    }
}

extension SimulatedServer {
    /// Counts an act that the server is about to perform, if it is a fault.
    func cover(_ act: ServerAct) {
        switch act {
        case .answer(let stream):
            guard let state = streams[stream], !state.isAnswered, let answer = state.answer,
                let fault = Self.fault(of: answer, state.fate)
            else { return }
            cover(fault, stream)
        case .answerInPart(let stream):
            guard let state = streams[stream], !state.isAnswered,
                case .half(let half, _) = state.fate
            else { return }
            cover(Self.fault(of: half), stream)
        case .refuse(let stream):
            if let state = streams[stream], !state.isAnswered { cover(.refused, stream) }
        case .reset(let stream):
            if let state = streams[stream], !state.isAnswered { cover(.reset, stream) }
        case .announceEnd: if !hasSaidGoAway { simulation.cover(.goAwayNotice, link: link) }
        case .goAway: if !hasSaidGoAway { simulation.cover(.goAway, link: link) }
        case .raiseGoAway: simulation.cover(.goAwayRaised, link: link)
        case .disown: if !hasSaidGoAway { simulation.cover(.goAwayAlways, link: link) }
        case .close: simulation.cover(.closed, link: link)
        case .resetConnection: simulation.cover(.connectionReset, link: link)
        case .fallSilent: simulation.cover(.silence, link: link)
        case .stall: simulation.cover(.stall, link: link)
        case .halfClose: simulation.cover(.halfClose, link: link)
        case .violate: if !isMute { simulation.cover(.violation, link: link) }
        case .answerTwice: if !isMute { simulation.cover(.secondResponse, link: link) }
        case .announce, .changeSettings: simulation.cover(.settings, link: link)
        case .giveBackWindow, .feed, .openWindow: break
        }
    }

    func cover(_ fault: Fault, _ stream: Int32) {
        let state = streams[stream]
        simulation.cover(
            fault, link: link, row: state?.copy.map { simulation.journal.copies[$0].row },
            isWhole: state?.isWhole ?? true)
    }

    private static func fault(of answer: ServerAnswer, _ fate: Fate?) -> Fault? {
        if case .earlyAnswer = fate { return .early }
        switch (answer.status, answer.reason) {
        case (201..<400, _), (401, _), (404..<413, _), (421, _), (425, _), (502, _), (504, _):
            return .oddStatus
        case (429, "TooManyProviderTokenUpdates"): return .tooManyTokens
        case (429, _): return .busy
        case (500..., _): return .trouble
        case (403, "ExpiredProviderToken"): return .expired
        case (403, _): return .credential
        case (400, "BadDeviceToken"): return .badToken
        case (400, .some): return .strange
        default: return nil
        }
    }

    private static func fault(of half: HalfResponse) -> Fault {
        switch half {
        case .headersOnly: .headersOnly
        case .cutBody: .cutBody
        case .refusedAfterHeaders: .refusedAfterHeaders
        case .wrongLength: .wrongLength
        }
    }
}
