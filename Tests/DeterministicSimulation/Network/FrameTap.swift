/// Parses what a client sends, frame by frame: which requests it sends, and which it cancels.
struct FrameTap {
    /// A request that was sent.
    struct Request {
        var stream: Int32
        var row: Int
        /// Time at which the last byte of its header was submitted; for a notification, its last
        /// byte.
        var time: UInt64
        /// For a notification: its identifier, by which an error response names it, and the number
        /// of the connection's bytes up to its end.
        var identifier: UInt32?
        var end = 0
    }

    /// The first bytes of every apns-id of the campaign; the row's twelve digits follow.
    private let idPrefix: [UInt8]
    private var header: [UInt8] = []
    private var block: [UInt8] = []
    private var prefaceLeft = 24
    private var payloadLeft = 0
    private var type: UInt8 = 0
    private var stream: Int32 = 0
    private var endsStream = false
    private var time: UInt64 = 0
    /// Requests in the order in which they were sent.
    private(set) var requests: [Request] = []
    /// Streams whose requests were sent to their end, with the time at which the last byte was
    /// submitted.
    private(set) var completed: [Int32: UInt64] = [:]
    /// Streams with a DATA frame that is not the last one.
    private var divided: Set<Int32> = []
    /// Streams that the client reset, in order.
    private(set) var cancelled: [Int32] = []
    /// True once a GOAWAY with an error was sent.
    private(set) var hasBlamed = false
    /// Times at which PINGs without ACK were sent.
    private(set) var pings: [UInt64] = []

    /// Reader for a connection to a legacy gateway; nil for HTTP/2.
    private var notifications: NotificationReader?
    private let rowOfToken: [[UInt8]: Int]

    init(idPrefix: [UInt8]) {
        self.idPrefix = idPrefix
        rowOfToken = [:]
    }

    init(rowOfToken: [[UInt8]: Int]) {
        idPrefix = []
        self.rowOfToken = rowOfToken
        notifications = NotificationReader()
    }

    /// Whether a request is sent in parts, with time between them.
    func isInParts(_ request: Request) -> Bool {
        notifications == nil
            && (divided.contains(request.stream) || completed[request.stream] != request.time)
    }

    mutating func hear(_ bytes: ArraySlice<UInt8>, at time: UInt64) {
        self.time = time
        if notifications != nil {
            hearNotifications(bytes)
            return
        }
        var at = bytes.startIndex
        while at < bytes.endIndex {
            if prefaceLeft > 0 {
                let count = min(prefaceLeft, bytes.endIndex - at)
                prefaceLeft -= count
                at += count
            } else if payloadLeft > 0 {
                let count = min(payloadLeft, bytes.endIndex - at)
                if type == 1 || type == 7 { block += bytes[at..<(at + count)] }
                payloadLeft -= count
                at += count
                if payloadLeft == 0, type == 1 { end() }
                if payloadLeft == 0, endsStream { completed[stream] = time }
                if payloadLeft == 0, type == 7 { hasBlamed = block[4..<8].contains { $0 > 0 } }
            } else {
                header.append(bytes[at])
                at += 1
                if header.count == 9 { begin() }
            }
        }
    }

    private mutating func hearNotifications(_ bytes: ArraySlice<UInt8>) {
        for notification in notifications!.read(bytes) {
            requests.append(
                Request(
                    stream: Int32(requests.count + 1), row: rowOfToken[notification.token] ?? -1,
                    time: time, identifier: notification.identifier, end: notification.end))
        }
    }

    private mutating func begin() {
        payloadLeft = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        type = header[3]
        stream = header[5...].reduce(Int32(0)) { $0 << 8 | Int32($1) }
        if type == 3 { cancelled.append(stream) }
        // HEADERS or DATA with END_STREAM.
        endsStream = type <= 1 && header[4] & 1 != 0
        if endsStream, payloadLeft == 0 { completed[stream] = time }
        if type == 0, !endsStream { divided.insert(stream) }
        if type == 6, header[4] & 1 == 0 { pings.append(time) }
        header.removeAll(keepingCapacity: true)
        block.removeAll(keepingCapacity: true)
    }

    /// Finds the apns-id in the header block. It is there as plain text, because the engine never
    /// Huffman-codes it.
    private mutating func end() {
        var at = 0
        while at + idPrefix.count + 12 <= block.count {
            if block[at] == idPrefix[0], block[at..<(at + idPrefix.count)].elementsEqual(idPrefix) {
                let digits = block[(at + idPrefix.count)..<(at + idPrefix.count + 12)]
                let row = Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? -1
                requests.append(Request(stream: stream, row: row, time: time))
                return
            }
            at += 1
        }
        requests.append(Request(stream: stream, row: -1, time: time))
    }
}
