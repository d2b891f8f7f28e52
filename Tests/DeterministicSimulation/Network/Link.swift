import Broadside
import Glibc

/// One TCP connection of the simulation, with its data in flight.
struct Link {
    /// Bytes in the engine's memory that the network may still read.
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
    /// Whether the server reads only a kilobyte per second. The network then buffers only as much.
    var isSlow = false

    /// True until the client knows the result of its attempt to connect.
    var isConnecting = true
    /// False once the client has closed its socket, or its process has died.
    var isOpenAtClient = true
    /// False once the server has ended the connection, or received the client's end.
    var isOpenAtServer = false
    /// Whether all bytes are lost without notice.
    var isSilent = false
    /// Time until which the server neither reads nor acts.
    var stalledUntil: UInt64 = 0
    var isReceiving = false
    /// Bytes that arrived before the client started to receive.
    var early: [[UInt8]] = []
    /// An end that arrived before the client started to receive.
    var earlyEnd: Int32?
    var endWasTold = false
    /// The error of the next send.
    var sendError: Int32?

    var pendingSend: PendingSend?
    var isSendBlocked = false
    /// Whether any send had to wait for space, or sent less than requested.
    var wasSendBlocked = false
    var lastSendDone: UInt64 = 0
    /// Whether requests that the client never submitted may have been written after the bytes being
    /// sent.
    var endedWhileSending = false
    /// Number of bytes that were submitted and parsed, but not yet accepted by the network.
    var heardAhead = 0
    /// Times since when bytes wait, with the position in the stream up to which bytes were
    /// submitted at that time.
    var waiting: [(end: Int, since: UInt64)] = []
    /// Number of bytes that the network has accepted.
    var takenCount = 0
    /// Time at which the client sent the bytes that the server receives now.
    var arrivingSentAt: UInt64 = 0
    /// When the client last submitted bytes.
    var lastHeardAt: UInt64 = 0
    /// Number of bytes in flight to the server's application.
    var countToServer = 0
    var lastArrivalAtServer: UInt64 = 0
    var lastArrivalAtClient: UInt64 = 0
    /// The last stream in a GOAWAY that the client has read.
    var lastStream: Int32?
    var lastStreamToldAt: UInt64 = 0
    /// Streams whose refusal the client has received.
    var refused: [(stream: Int32, toldAt: UInt64)] = []
    /// Time at which the client closed the connection. It may not have read what it received at
    /// that instant.
    var closedAt: UInt64 = 0
    /// Whether the client closes the connection because the server or the network ended it. It may
    /// not read anything that it receives from now on.
    var isDeaf = false
    /// Time at which the client last learned that its bytes were accepted.
    var sentToldAt: UInt64 = 0
    /// Time at which the client last received bytes from the server.
    var bytesToldAt: UInt64 = 0
    /// Number of responses that the client received, and time at which it first received a GOAWAY.
    var responses = 0
    /// Number of server errors since the last other response, a lower bound; and whether there may
    /// have been another response at all.
    var serverErrorsInARow = 0
    var isProven = false
    /// Time since when the connection gets no requests because of these errors.
    var doubtedSince: UInt64?
    var goAwayToldAt: UInt64?
    /// Whether the client received a GOAWAY that it must have noticed.
    var hasSurelyGoneAway = false
    /// Number of GOAWAYs that the server has sent.
    var goAwayCount = 0
    /// Time since when the connection must not get a request, and the reason.
    var noRequestsSince: (time: UInt64, why: String)?
    /// Time at which the server broke HTTP/2, and whether the client must notice.
    var brokenAt: UInt64?
    /// Whether a response was the first reason for the client to drain the connection.
    var isSurelyDrained = false
    /// Number of the series of such connections in which this one counted last.
    var brokenInSeries = 0
    var isSurelyBroken = false
    /// Whether the client learned that it could not connect.
    var isSurelyRefused = false
    /// Pause after refusals, and time of the last refusal that the client received.
    var refusal = RefusalModel()
    var refusedAt: UInt64 = 0
    /// Number of requests since the start of the address's outage, and how many of them have ended.
    struct Trial {
        var requests = 0
        var ended = 0
        /// Time at which the last of them was submitted.
        var last: UInt64 = 0
    }
    var trial = Trial()
    /// Number of requests whose end the client has received, in any form.
    var endedRequests = 0
    /// Time since when the connection has no room for a request although rows wait.
    var starvedSince: UInt64?
    /// Time since when the connection has room but gets no request although rows wait.
    var idleSince: UInt64?
    /// Number of requests that it had carried at the last check.
    var requestsAtLook = 0
    /// Time at which `isDeaf` became true, and time of a failed send.
    var deafAt: UInt64?
    var sendFailedAt: UInt64?
    /// For a connection to a legacy gateway: times, each with the number of bytes that the network
    /// had accepted by then.
    var takenTimes: [(count: Int, time: UInt64)] = []
    /// Time at which the client received the first byte from a legacy gateway, and the gateway's
    /// complete error response.
    var firstWordAt: UInt64?
    var word: HeardWord?
    /// Number of bytes that the client has received, to compare with offsets in the server's
    /// output.
    var countAtClient = 0
}

/// Whether the engine's memory still has the same bytes.
func isEqual(_ bytes: UnsafeRawBufferPointer, _ copy: [UInt8]) -> Bool {
    bytes.count == copy.count && !copy.isEmpty
        && copy.withUnsafeBytes { memcmp(bytes.baseAddress!, $0.baseAddress!, $0.count) == 0 }
}
