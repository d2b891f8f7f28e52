internal import BroadsideAPNs
internal import BroadsideLegacyGateway
internal import BroadsideRing
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// The legacy binary gateway, or the feedback service: one thread that serves one port.
///
/// A client certificate is mandatory and determines the topics of a connection. Source: Apple,
/// "Binary Provider API" (archived).
final class LegacyService: Sendable {
    enum Kind: Sendable {
        case gateway, feedback
    }

    /// Maximum number of simultaneous connections. Further clients wait until they are accepted.
    private static let connectionLimit = 256

    /// The numeric address and port of the listener.
    let address: String
    private let thread: EndpointThread

    init(
        _ kind: Kind, listen: SocketAddress, tls: TLSContext, legacy: LegacyContext
    ) throws(SimulatorError) {
        let option = kind == .gateway ? "--binary-listen" : "--feedback-listen"
        let listener: Int32
        do throws(RingError) {
            listener = try Socket.listen(on: listen)
            address = try Socket.localAddress(of: listener).description
        } catch {
            throw SimulatorError("\(option): \(error.description)", exitCode: 1)
        }
        thread = try EndpointThread { (stopDescriptor, isReady) throws(RingError) in
            isReady()
            let loop = Loop(kind, listener: listener, tls: tls, legacy: legacy)
            return loop.run(stopDescriptor: stopDescriptor)
        }
    }

    /// Ends all connections; connections of the gateway end with status 10. Must be called exactly
    /// once.
    func stop() -> SimulatorTotals {
        thread.wake()
        return thread.join()
    }

    /// The state of the service's thread.
    private final class Loop {
        private let kind: Kind
        private let listener: Int32
        private let tls: TLSContext
        private let legacy: LegacyContext
        private var connections: [LegacyConnection] = []
        private var journal: JournalWriter?
        private var totals = SimulatorTotals()
        /// Time at which connections are accepted again, nanoseconds.
        private var acceptsAt: UInt64 = 0

        init(_ kind: Kind, listener: Int32, tls: TLSContext, legacy: LegacyContext) {
            self.kind = kind
            self.listener = listener
            self.tls = tls
            self.legacy = legacy
            if kind == .gateway { journal = legacy.journal.map { JournalWriter($0) } }
        }

        func run(stopDescriptor: Int32) -> SimulatorTotals {
            defer { Socket.close(listener) }
            while true {
                let accepts =
                    connections.count < LegacyService.connectionLimit
                    && acceptsAt <= ClockStart.monotonicNanoseconds()
                var waited = [
                    pollfd(fd: stopDescriptor, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: accepts ? listener : -1, events: Int16(POLLIN), revents: 0),
                ]
                for connection in connections {
                    let writes = connection.wantsToWrite ? Int16(POLLOUT) : 0
                    waited.append(
                        pollfd(
                            fd: connection.descriptor, events: Int16(POLLIN) | writes, revents: 0))
                }
                _ = SystemCall.poll(&waited, timeout())
                if waited[0].revents != 0 { break }
                for (index, connection) in connections.enumerated()
                where waited[index + 2].revents != 0 {
                    serve(connection, waited[index + 2].revents)
                }
                if waited[1].revents != 0 { accept() }
                settleDue()
            }
            writeShutdown()
            journal?.flush()
            return totals
        }

        private func accept() {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if legacy.shared.isOutOfFiles(errno: errno) {
                    acceptsAt =
                        ClockStart.monotonicNanoseconds() + SimulatorLimits.acceptPauseNanoseconds
                }
                return
            }
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            do throws(TLSError) {
                connections.append(
                    try LegacyConnection(
                        descriptor: descriptor, number: legacy.shared.nextConnection(),
                        context: tls, certificates: legacy.certificates))
                assert(
                    connections.count <= LegacyService.connectionLimit, "connections have a limit")
                totals.connections += 1
                legacy.shared.publish(opened: 1, requests: 0, accepted: 0)
            } catch {
                _ = close(descriptor)
            }
        }

        private func serve(_ connection: LegacyConnection, _ events: Int16) {
            if events & Int16(POLLOUT) != 0 { connection.write() }
            guard events & ~Int16(POLLOUT) != 0 else { return }
            let was = connection.phase
            let bytes = connection.read()
            connection.write()
            if was == .handshake {
                if connection.phase == .gone { totals.handshakesFailed += 1 }
                if let refusal = connection.refusal {
                    refuse(connection, refusal)
                } else if connection.phase == .reading, kind == .feedback {
                    sendFeedback(connection)
                }
            }
            guard connection.refusal == nil else { return }
            if kind == .gateway, connection.phase == .reading || connection.phase == .gone {
                take(bytes, from: connection)
            }
            // A provider that has closed its sending direction may still read.
            if connection.phase == .gone, connection.packet != nil { sendErrorPacket(connection) }
        }

        /// Rejects a client certificate. The legacy protocols have no message for this, so the
        /// connection ends without accepting a notification. Without a close_notify, its end differs
        /// from the end of an empty list.
        private func refuse(_ connection: LegacyConnection, _ reason: Reason) {
            totals.countCertificate(refused: reason)
            if connection.phase == .reading {
                connection.finish(now: ClockStart.monotonicNanoseconds(), isOrderly: false)
            }
        }

        private func take(_ bytes: [UInt8], from connection: LegacyConnection) {
            connection.reader.append(bytes)
            while !connection.discardsInput, let event = connection.reader.next() {
                switch event {
                case .notification(let notification):
                    let finding = legacy.finding(of: notification)
                    if let finding { totals.count(finding) }
                    let status = legacy.status(
                        of: notification, topic: connection.topics.first, finding: finding)
                    record(notification, status: status, on: connection)
                case .malformed(let status, let identifier):
                    let bad = BinaryNotification(
                        command: connection.reader.command ?? .frame, identifier: identifier,
                        token: [], payload: [])
                    record(bad, status: status.rawValue, on: connection)
                }
            }
            if journal?.flushDue != nil { journal?.flush() }
        }

        private func record(
            _ notification: BinaryNotification, status: UInt8, on connection: LegacyConnection
        ) {
            totals.countGateway(status: status)
            let reason = BinaryStatus(rawValue: status)?.reason
            let isAccepted = status == BinaryStatus.noError.rawValue
            let response = Response(
                status: isAccepted ? 0 : UInt16(status), reason: isAccepted ? nil : reason)
            let digits = LegacyContext.digits(notification.token)
            journal?.append(
                microseconds: legacy.start.microsecondsNow(), connection: connection.number,
                stream: notification.identifier ?? 0,
                identifier: LegacyContext.identifier(notification.identifier),
                token: digits.span.rawBytes, response: response,
                now: ClockStart.monotonicNanoseconds())
            // Counted first: after `wait`, a reset finds the notification counted.
            legacy.shared.publish(opened: 0, requests: 1, accepted: isAccepted ? 1 : 0)
            legacy.record(
                notification, digits: digits, topic: connection.topics.first, response: response,
                connection: connection.number)
            guard isAccepted, let topic = connection.topics.first else {
                scheduleErrorPacket(connection, status: status, notification)
                return
            }
            legacy.deliver(notification, topic: topic)
            connection.accepted += 1
            connection.lastAccepted = notification.identifier
            if let every = legacy.script.shutdownEvery, connection.accepted >= every {
                scheduleErrorPacket(
                    connection, status: BinaryStatus.shutdown.rawValue, notification)
            }
        }

        /// Discards all later input of the connection, and sends the error packet after a delay.
        private func scheduleErrorPacket(
            _ connection: LegacyConnection, status: UInt8, _ notification: BinaryNotification
        ) {
            let script = legacy.script
            assert(!connection.discardsInput, "the first error ends a connection")
            connection.discardsInput = true
            // If the client uses command 0, its notifications have no identifier. The connection
            // then ends without an error packet.
            if notification.command != .simple {
                connection.packet = BinaryErrorPacket(
                    status: status, identifier: notification.identifier ?? 0)
            }
            connection.end = script.end
            guard connection.phase == .reading else { return }
            connection.phase = .awaitingErrorPacket(
                due: ClockStart.monotonicNanoseconds() + script.errorDelayNanoseconds)
        }

        /// Sends the feedback list. The client sends nothing on such a connection.
        private func sendFeedback(_ connection: LegacyConnection) {
            let tuples = legacy.feedback.take(topics: connection.topics)
            connection.enqueue(tuples.flatMap(\.encoded))
            connection.finish(now: ClockStart.monotonicNanoseconds())
        }

        /// Sends the error packet and ends the connection.
        private func sendErrorPacket(_ connection: LegacyConnection) {
            if let packet = connection.packet { connection.enqueue(packet.encoded) }
            connection.packet = nil
            connection.finish(now: ClockStart.monotonicNanoseconds())
        }

        private func settleDue() {
            let now = ClockStart.monotonicNanoseconds()
            for connection in connections {
                switch connection.phase {
                case .awaitingErrorPacket(let due) where due <= now:
                    sendErrorPacket(connection)
                case .ending(let due) where due <= now:
                    connection.phase = .gone
                default:
                    break
                }
            }
            let count = connections.count
            connections.removeAll { $0.phase == .gone }
            legacy.shared.publish(opened: connections.count - count, requests: 0, accepted: 0)
        }

        /// Returns the milliseconds until the next work is due, or -1 if no work is pending.
        private func timeout() -> Int32 {
            let now = ClockStart.monotonicNanoseconds()
            var soonest = acceptsAt > now ? acceptsAt : .max
            for connection in connections {
                switch connection.phase {
                case .awaitingErrorPacket(let due), .ending(let due): soonest = min(soonest, due)
                default: break
                }
            }
            // The threads of the provider API may be idle, so this thread delivers the
            // notifications that it stored.
            if let rest = legacy.devices?.settleDue(microseconds: legacy.start.microsecondsNow()) {
                soonest = min(soonest, now + rest * 1000)
            }
            if let flush = legacy.instruments.recording?.flushDue(now) {
                soonest = min(soonest, flush)
            }
            guard soonest < .max else { return -1 }
            return soonest <= now ? 0 : Int32(clamping: (soonest - now) / 1_000_000 + 1)
        }

        private func writeShutdown() {
            for connection in connections {
                guard connection.phase == .reading, let last = connection.lastAccepted else {
                    continue
                }
                connection.enqueue(
                    BinaryErrorPacket(
                        status: BinaryStatus.shutdown.rawValue, identifier: last
                    ).encoded)
                connection.finish(now: ClockStart.monotonicNanoseconds())
            }
        }
    }
}
