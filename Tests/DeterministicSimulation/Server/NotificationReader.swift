/// Parses what a client writes to a legacy gateway, in pieces of any size. It implements Apple's
/// "Binary Provider API" (archived) independently of the engine.
struct NotificationReader {
    struct Notification {
        var command = 0
        var identifier: UInt32?
        var expiration: UInt32?
        var priority: Int?
        var token: [UInt8] = []
        var payload: [UInt8] = []
        /// Number of the connection's bytes up to the notification's end.
        var end = 0
    }

    private var pending: [UInt8] = []
    private var at = 0
    private var count = 0
    /// Description of bytes that are not a notification. Nothing is parsed after them.
    private(set) var problem: String?

    /// Adds received bytes.
    ///
    /// - Returns: The notifications that these bytes complete.
    mutating func read(_ bytes: some Sequence<UInt8>) -> [Notification] {
        pending += bytes
        var notifications: [Notification] = []
        while problem == nil, let next = next() { notifications.append(next) }
        pending.removeFirst(at)
        at = 0
        return notifications
    }

    /// Number of bytes of an incomplete notification.
    var openCount: Int { pending.count - at }

    private mutating func next() -> Notification? {
        guard at < pending.count else { return nil }
        var notification = Notification(command: Int(pending[at]))
        var place = at + 1
        switch notification.command {
        case 0, 1:
            if notification.command == 1 {
                guard pending.count >= place + 8 else { return nil }
                notification.identifier = number(place, 4)
                notification.expiration = number(place + 4, 4)
                place += 8
            }
            for field in 0..<2 {
                guard pending.count >= place + 2 else { return nil }
                let length = Int(number(place, 2))
                guard pending.count >= place + 2 + length else { return nil }
                let data = Array(pending[(place + 2)..<(place + 2 + length)])
                if field == 0 { notification.token = data } else { notification.payload = data }
                place += 2 + length
            }
            if notification.payload.count > 256 { problem = "a payload of more than 256 bytes" }
        case 2:
            guard pending.count >= place + 4 else { return nil }
            let end = place + 4 + Int(number(place, 4))
            guard pending.count >= end else { return nil }
            readItems(place + 4, end, &notification)
            if notification.payload.count > 2048 { problem = "a payload of more than 2048 bytes" }
            place = end
        default:
            problem = "command \(notification.command)"
            return nil
        }
        count += place - at
        at = place
        notification.end = count
        return notification
    }

    private mutating func readItems(_ start: Int, _ end: Int, _ notification: inout Notification) {
        var place = start
        var seen: Set<UInt8> = []
        while place < end, problem == nil {
            guard place + 3 <= end, place + 3 + Int(number(place + 1, 2)) <= end else {
                problem = "an item that goes beyond its frame"
                return
            }
            let length = Int(number(place + 1, 2))
            let item = pending[place]
            let data = place + 3
            if !seen.insert(item).inserted { problem = "item \(item) twice" }
            switch (item, length) {
            case (1, 1...100): notification.token = Array(pending[data..<(data + length)])
            case (2, _): notification.payload = Array(pending[data..<(data + length)])
            case (3, 4): notification.identifier = number(data, 4)
            case (4, 4): notification.expiration = number(data, 4)
            case (5, 1): notification.priority = Int(pending[data])
            default: problem = "item \(item) of \(length) bytes"
            }
            place = data + length
        }
        if !seen.isSuperset(of: [1, 2]) { problem = problem ?? "no token, or no payload" }
    }

    private func number(_ place: Int, _ length: Int) -> UInt32 {
        pending[place..<(place + length)].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
