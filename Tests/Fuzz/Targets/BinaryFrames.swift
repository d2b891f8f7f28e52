import BroadsideLegacyGateway

extension FuzzTarget {
    /// What a provider writes to the legacy gateway, what the gateway answers, and what the feedback
    /// service says: however the bytes arrive they mean the same, and what is written again is what
    /// was read.
    static let binaryFrames = FuzzTarget(name: "binary-frames") { bytes in
        var input = FuzzInput(bytes)
        let isFeedback = input.choice(below: 2) == 1
        let size = 1 + input.choice(below: 64)
        let stream = input.bytes
        if isFeedback {
            let whole = tuples(stream.pieces(of: 1 << 20))
            precondition(whole == tuples(stream.pieces(of: size)), "torn tuples say otherwise")
        } else {
            let whole = notifications(stream.pieces(of: 1 << 20))
            precondition(
                whole == notifications(stream.pieces(of: size)), "torn frames say otherwise")
        }
        let packet = Array(stream.prefix(BinaryErrorPacket.count))
        guard let read = BinaryErrorPacket(packet) else { return }
        precondition(read.encoded == packet, "an error packet changed by being written")
        _ = (read.meaning.row, read.meaning.campaign, read.meaning.reason)
    }

    private static func notifications(
        _ pieces: [[UInt8]]
    ) -> [BinaryNotificationReader.Event] {
        var reader = BinaryNotificationReader()
        var events: [BinaryNotificationReader.Event] = []
        for piece in pieces {
            reader.append(piece)
            while let event = reader.next() {
                events.append(event)
                guard case .notification(let notification) = event else { return events }
                precondition(notification.token.count <= BinaryCommand.tokenLimit)
                precondition(notification.payload.count <= notification.command.payloadLimit)
                var again = BinaryNotificationReader()
                again.append(notification.encoded)
                let event = again.next()
                precondition(event == .notification(notification), "changed by being written")
                let rest = again.next()
                precondition(rest == nil, "longer by being written")
            }
        }
        return events
    }

    private struct Feedback: Equatable {
        var tuples: [FeedbackTuple] = []
        var problem: FeedbackReader.Problem?
    }

    private static func tuples(_ pieces: [[UInt8]]) -> Feedback {
        var reader = FeedbackReader()
        var feedback = Feedback()
        for piece in pieces {
            reader.append(piece)
            do throws(FeedbackReader.Problem) {
                while let tuple = try reader.next() {
                    precondition((1...BinaryCommand.tokenLimit).contains(tuple.token.count))
                    var again = FeedbackReader()
                    again.append(tuple.encoded)
                    let event = try again.next()
                    precondition(event == tuple, "a tuple changed by being written")
                    feedback.tuples.append(tuple)
                }
            } catch {
                feedback.problem = error
                return feedback
            }
        }
        return feedback
    }
}
