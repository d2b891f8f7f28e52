import Broadside
import BroadsideSupport

/// A legacy gateway's end of one connection. It accepts notifications in order without a response,
/// until one of them is wrong. Then it discards all later ones, sends its error response, and ends
/// the connection.
final class SimulatedGateway {
    /// Its last output.
    struct LastWord {
        var fate: GatewayFate
        var status: UInt8
        /// The identifier that the response names.
        var identifier: UInt32
        /// Index of the named notification among those that arrived, from 0; nil if it is none of
        /// them.
        var named: Int?
        var ending: GatewayEnding
    }

    let link: Int
    var faults: FaultPlan
    unowned let simulation: Simulation
    var random: SimulationRandom
    private var reader = NotificationReader()
    /// Journal indices of the notifications that arrived, in order, and their identifiers.
    private(set) var copies: [Int] = []
    private var identifiers: [UInt32] = []
    /// Number of notifications that it processed.
    private var taken = 0
    private(set) var lastWord: LastWord?
    private var hasSpoken = false
    private var sentCount = 0
    /// Number of bytes after which the client has the whole error response; nil if there is none.
    private(set) var responseEnd: Int?

    init(link: Int, faults: FaultPlan, simulation: Simulation, random: SimulationRandom) {
        self.link = link
        self.faults = faults
        self.simulation = simulation
        self.random = random
    }

    /// Whether it still accepts notifications.
    var isGood: Bool { lastWord == nil }

    /// Journal indices of the notifications that arrived last.
    var lastCopies: ArraySlice<Int> { copies.suffix(8) }

    /// From now on, it has no faults.
    func calmDown() { faults = .calm }

    /// Receives bytes from the network.
    func receive(_ bytes: [UInt8]) {
        for notification in reader.read(bytes) {
            arrived(notification)
            guard simulation.failure == nil else { return }
        }
        if let problem = reader.problem { simulation.fail("link \(link) carries \(problem)") }
    }

    private func arrived(_ notification: NotificationReader.Notification) {
        guard
            let row = simulation.checkNotification(
                notification, after: identifiers.last, link: link)
        else { return }
        let copy = simulation.journal.arrived(
            row: row, link: link, stream: Int32(copies.count + 1), tokenIssued: nil,
            simulation: simulation)
        simulation.journal.completed(copy, isDiscarded: !isGood, simulation: simulation)
        copies.append(copy)
        identifiers.append(notification.identifier ?? 0)
        if isGood {
            decide(notification, copy)
        } else {
            discard(copy)
        }
    }

    /// Discards a notification that came after a wrong one.
    private func discard(_ copy: Int) {
        simulation.journal.resolve(copy, .notProcessed)
        guard let word = simulation.links[link].word, word.position != nil else { return }
        simulation.journal.told(copy, at: word.toldAt, isTooLate: false)
    }

    private func decide(_ notification: NotificationReader.Notification, _ copy: Int) {
        let last = copies.count - 1
        var fate = faults.gateway.fate(
            of: notification.token, command: notification.command, taken: taken, random: &random)
        let row = simulation.journal.copies[copy].row
        if simulation.springs(.gatewayJunk, link: link, row: row) { fate = .junk }
        if simulation.springs(.gatewayHalf, link: link, row: row) { fate = .half(status: 8) }
        if simulation.springs(.gatewayWordless, link: link, row: row) { fate = .wordless }
        switch fate {
        case .take, .shutDown:
            taken += 1
            simulation.journal.resolve(copy, .answered(.accepted))
            if case .shutDown = fate { end(fate, 10, identifiers[last], named: last) }
        case .refuse(let status):
            simulation.journal.resolve(copy, .answered(.refused(status)))
            end(fate, status, identifiers[last], named: last)
        case .half(let status):
            discard(copy)
            end(fate, status, identifiers[last], named: last)
        case .nameless(let status):
            discard(copy)
            end(fate, status, 0, named: nil)
        case .wordless, .junk:
            discard(copy)
            end(fate, 0, 0, named: nil)
        }
    }

    /// An identifier of no notification that arrived: 0, or that of one that may be in flight, that
    /// may be written but not yet sent, or that will never come.
    private func strangeIdentifier() -> UInt32 {
        let next = UInt32(random.between(1...9))
        let left = simulation.taps[link].requests.last?.identifier ?? 0
        let isHeld = simulation.links[link].pendingSend != nil
        switch isHeld ? 2 : random.below(4) {
        case 0: return 0
        case 1: return (identifiers.last ?? 0) &+ next
        case 2: return left &+ next
        default: return left &+ 5000
        }
    }

    /// - Parameter named: nil if the response names no notification that arrived.
    private func end(_ fate: GatewayFate, _ status: UInt8, _ identifier: UInt32, named: Int?) {
        // Without identifiers, it can't name a notification. In most cases, it ends the connection
        // without a response.
        let isNamed = simulation.plan.gateway?.command != 0
        let isMute = !isNamed && random.chance(0.7)
        lastWord = LastWord(
            fate: isMute ? .wordless : fate, status: status, identifier: isNamed ? identifier : 0,
            named: isNamed ? named : nil, ending: random.pick(faults.gateway.endings))
        let delay = random.chance(0.3) ? 0 : random.delay(faults.gateway.errorDelay)
        simulation.events.insert(.gatewaySpeaks(link: link), at: simulation.clock + delay)
    }

    /// Shuts the connection down, whatever is in progress.
    func sayGoodbye() {
        guard isGood else { return }
        let last = copies.count - 1
        end(.shutDown, 10, identifiers.last ?? 0, named: last >= 0 ? last : nil)
    }

    /// Sends the error response, and ends the connection.
    func speak() {
        guard var word = lastWord, !hasSpoken, simulation.links[link].isOpenAtServer else { return }
        hasSpoken = true
        cover(word)
        if case .nameless = word.fate, simulation.plan.gateway?.command != 0 {
            word.identifier = strangeIdentifier()
            lastWord = word
        }
        var response: [UInt8] = [8, word.status]
        for shift in [24, 16, 8, 0] {
            response.append(UInt8(truncatingIfNeeded: word.identifier >> UInt32(shift)))
        }
        if random.chance(faults.gateway.trailing) { response += [8, 1, 0, 0, 0, 1, 0xff] }
        var ending = word.ending
        switch word.fate {
        case .wordless:
            response = []
            // Without a response and without an end, the gateway would accept all notifications.
            if ending == .never { ending = .atOnce }
        case .half:
            response = Array(response.prefix(random.between(1...5)))
        case .junk:
            response = (0..<random.between(6...20)).map { _ in
                UInt8(truncatingIfNeeded: random.next())
            }
            response[0] |= 0x10
        case .take, .refuse, .shutDown, .nameless:
            responseEnd = sentCount + 6
        }
        sentCount += response.count
        if !response.isEmpty { simulation.serverSent(link: link, response) }
        switch ending {
        case .atOnce:
            // Bytes that arrive from now on cause a reset, which may come before the response is
            // read.
            if random.chance(0.3) { simulation.links[link].sendError = 32 }
            simulation.serverCloses(link: link, errno: 0)
        case .later:
            if random.chance(0.3) { simulation.links[link].sendError = 32 }
            simulation.schedule(.close, link: link, after: random.skewedDelay(4 * second))
        case .reset: simulation.serverCloses(link: link, errno: 104)
        case .never: break
        }
    }

    private func cover(_ word: LastWord) {
        let fault: Fault
        switch word.fate {
        case .wordless: fault = .gatewayWordless
        case .half: fault = .gatewayHalf
        case .junk: fault = .gatewayJunk
        case .nameless: fault = .gatewayNameless
        case .take, .shutDown: fault = word.named == nil ? .gatewayNameless : .gatewayShutdown
        case .refuse: fault = word.named == nil ? .gatewayNameless : .gatewayError
        }
        let copy = (word.named ?? copies.indices.last).map { simulation.journal.copies[copies[$0]] }
        let row = copy?.row
        simulation.cover(fault, link: link, row: row, isWhole: true)
        if let copy, simulation.clock - copy.sentAt > simulation.plan.silence {
            simulation.cover(.gatewayLate, link: link, row: row, isWhole: true)
        }
        if word.ending == .never {
            simulation.cover(.gatewayStays, link: link, row: row, isWhole: true)
        }
    }

    /// Performs an act that is possible with either protocol.
    func perform(_ act: ServerAct) {
        switch act {
        case .close:
            simulation.cover(.closed, link: link)
            simulation.serverCloses(link: link, errno: 0)
        case .resetConnection:
            simulation.cover(.connectionReset, link: link)
            simulation.serverCloses(link: link, errno: 104)
        case .fallSilent:
            simulation.cover(.silence, link: link)
            simulation.fallSilent(link: link)
        case .stall(let duration):
            simulation.cover(.stall, link: link)
            simulation.stall(link: link, for: duration)
        case .halfClose:
            simulation.cover(.halfClose, link: link)
            hasSpoken = true
            simulation.serverEndsSending(link: link)
        default:
            preconditionFailure("\(act) is an act of HTTP/2")
        }
    }
}

extension ServerAnswer {
    /// Response that an error status means for the notification that it names.
    static func refused(_ status: UInt8) -> ServerAnswer {
        ServerAnswer(
            status: Int(status), reason: Self.gatewayReasons[status] ?? "UnknownError",
            isGateways: true)
    }

    /// Apple's "Binary Provider API" (archived), table of error codes. If the provider API has a
    /// reason with the same meaning, its name is used.
    private static let gatewayReasons: [UInt8: String] = [
        1: "ProcessingError", 2: "MissingDeviceToken", 3: "MissingTopic", 4: "PayloadEmpty",
        5: "InvalidTokenSize", 6: "InvalidTopicSize", 7: "PayloadTooLarge", 8: "BadDeviceToken",
        10: "Shutdown", 128: "ProtocolError",
    ]

    /// Whether a gateway's status refuses a row permanently, because of the credential, or
    /// temporarily.
    enum GatewayMeaning { case rejected, credential, transient }

    static func meaning(ofGateway status: Int) -> GatewayMeaning {
        switch status {
        case 2, 4, 5, 7, 8, 128: .rejected
        case 3, 6: .credential
        default: .transient
        }
    }
}
