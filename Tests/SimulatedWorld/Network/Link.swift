import Broadside

/// One TCP connection of the world, with what is under way on it.
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
    /// Since when it leaves no room for a request although rows wait.
    var starvedSince: UInt64?
    /// Since when it has room and gets no request although rows wait.
    var idleSince: UInt64?
    /// Bytes that were handed to the client, counted against the server's evidence.
    var countAtClient = 0
}
