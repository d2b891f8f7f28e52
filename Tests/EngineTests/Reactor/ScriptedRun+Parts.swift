import BroadsideLegacyGateway
import BroadsideRing
import BroadsideRows

@testable import BroadsideEngine

/// What a scripted run consists of, and what a test may have it do.
extension ScriptedRun {
    /// What a server does with a request.
    enum Reply {
        case status(Int, String? = nil, retryAfter: String? = nil)
        /// RST_STREAM with REFUSED_STREAM: not acted on.
        case refuse
        /// RST_STREAM with INTERNAL_ERROR.
        case reset
        /// No answer, ever.
        case silence
    }

    /// What becomes of an attempt at a connection.
    enum Opening {
        case open
        case fails(errno: Int32)
        /// TCP never says anything.
        case silent
        /// TCP stands, the server's SETTINGS never come.
        case noSettings
    }

    /// A connection, or an attempt at one.
    struct Link {
        let reactor: Int
        let slot: Int
        /// The address, counted from 0.
        let address: Int
        /// Nanoseconds since the run began.
        let begun: UInt64
        var closed: UInt64?
        var pings: [UInt64] = []
        /// Answers no PING any more.
        var isDeaf = false
        /// What the network has been given and does not take; nil: it takes all at once.
        var held: [UInt8]?
        /// The network takes nothing any more, and says why.
        var sendErrno: Int?
        let server = ScriptedServer()
        /// What a legacy gateway reads.
        var notifications = BinaryNotificationReader()
    }

    enum Delivery {
        case completion(ReactorCompletion)
        case bytes(link: Int, [UInt8])
    }

    final class Reactor {
        var machine: TransparentReactor
        var inbox: [Delivery] = []
        var linkOfSlot: [Int: Int] = [:]
        var segment: [UInt8] = []

        init(_ machine: consuming TransparentReactor) {
            self.machine = machine
        }
    }

    /// What a row of the ledger says.
    struct Row: Equatable {
        var state: RowState
        var status: Int
        var reason: String?
        var attempts: Int
    }
}
