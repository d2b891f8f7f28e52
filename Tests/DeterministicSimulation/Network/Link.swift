import Broadside
import Glibc

/// One TCP connection of the simulation, with what is in flight on it.
struct Link {
    /// Bytes of the engine's memory that the network may still look at.
    struct PendingSend {
        var bytes: UnsafeRawBufferPointer
        var copy: [UInt8]
    }

    let id: Int
    let epoch: Int
    let reactor: Int
    let slot: Int
    let address: Int
    let openedAt: UInt64
    var latency: UInt64
    /// The server reads a kilobyte a second, and the network holds as much.
    var isSlow = false

    /// True until the client was told what became of its attempt.
    var isConnecting = true
    /// False once the client closed its socket, or its process died.
    var isOpenAtClient = true
    /// False once the server gave it up, or saw the client's end.
    var isOpenAtServer = false
    /// No byte comes through any more, and nobody is told.
    var isSilent = false
    /// The server neither reads nor acts before.
    var stalledUntil: UInt64 = 0
    var isReceiving = false
    /// What arrived before the client asked to receive.
    var early: [[UInt8]] = []
    /// An end that arrived before the client asked to receive.
    var earlyEnd: Int32?
    var endWasTold = false
    /// An error that the next send meets.
    var sendError: Int32?

    var pendingSend: PendingSend?
    var isSendBlocked = false
    /// A send had to wait for room, or took less than was asked, at any time.
    var wasSendBlocked = false
    var lastSendDone: UInt64 = 0
    /// Requests may have lain behind the bytes under way that the client never submitted.
    var endedWhileSending = false
    /// Bytes that were submitted, and listened to, but not taken by the network yet.
    var heardAhead = 0
    /// Since when they wait: up to which byte of all that were submitted, and submitted when.
    var waiting: [(end: Int, since: UInt64)] = []
    /// Bytes that the network has taken.
    var takenCount = 0
    /// When the bytes that the server gets now left the client's hands.
    var arrivingSentAt: UInt64 = 0
    /// When the client last submitted bytes.
    var lastHeardAt: UInt64 = 0
    /// Bytes on their way to the server's application.
    var countToServer = 0
    var lastArrivalAtServer: UInt64 = 0
    var lastArrivalAtClient: UInt64 = 0
    /// What a GOAWAY that the client has read named as the last stream.
    var lastStream: Int32?
    var lastStreamToldAt: UInt64 = 0
    /// Streams that it was told are refused.
    var refused: [(stream: Int32, toldAt: UInt64)] = []
    /// When the client closed it: what it was told at that instant it may not have looked at.
    var closedAt: UInt64 = 0
    /// When the client closes it because the server, or the connection, told it that it is of no use:
    /// whatever it is handed from here on it may not have looked at.
    var isDeaf = false
    /// When the client learned last that its bytes were taken.
    var sentToldAt: UInt64 = 0
    /// When it was last handed bytes of the server's.
    var bytesToldAt: UInt64 = 0
    /// Responses that it was told, and when it was told a GOAWAY first.
    var responses = 0
    var goAwayToldAt: UInt64?
    /// It was told one that it could not miss.
    var hasSurelyGoneAway = false
    /// GOAWAYs that its server has sent.
    var goAwayCount = 0
    /// Since when it must not get a request, and why.
    var noRequestsSince: (time: UInt64, why: String)?
    /// When its server broke HTTP/2, and whether the client has to notice.
    var brokenAt: UInt64?
    /// A response had the client drain it that was the first thing to do so.
    var isSurelyDrained = false
    /// In which series of such connections that counted last.
    var brokenInSeries = 0
    var isSurelyBroken = false
    /// The client learned that it could not connect.
    var isSurelyRefused = false
    /// How long it is left alone after refusals, and when the last one was told.
    var refusal = RefusalModel()
    var refusedAt: UInt64 = 0
    /// Requests since its address is in an outage, and how many of them came to an end.
    struct Trial {
        var requests = 0
        var ended = 0
        /// When the last one was submitted.
        var last: UInt64 = 0
    }
    var trial = Trial()
    /// Requests that the client was told the end of, whatever it was.
    var endedRequests = 0
    /// Since when it leaves no room for a request although rows wait.
    var starvedSince: UInt64?
    /// Since when it has room and gets no request although rows wait.
    var idleSince: UInt64?
    /// Requests that it had carried when that was looked at last.
    var requestsAtLook = 0
    /// When it became so, and when it was told that a send failed.
    var deafAt: UInt64?
    var sendFailedAt: UInt64?
    /// How many bytes the network had taken when, of a connection to a legacy gateway.
    var takenTimes: [(count: Int, time: UInt64)] = []
    /// When the client was handed the first byte of what a legacy gateway says, and its error response
    /// once that is whole.
    var firstWordAt: UInt64?
    var word: HeardWord?
    /// Bytes that were handed to the client, counted against the server's evidence.
    var countAtClient = 0
}

/// Whether memory of the engine's holds what it held before.
func isEqual(_ bytes: UnsafeRawBufferPointer, _ copy: [UInt8]) -> Bool {
    bytes.count == copy.count && !copy.isEmpty
        && copy.withUnsafeBytes { memcmp(bytes.baseAddress!, $0.baseAddress!, $0.count) == 0 }
}
