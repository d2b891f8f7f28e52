/// The fill level of a bounded table of a reactor.
package struct OccupancyGauge {
    package enum Kind: String {
        case rows = "rows in hand"
        case waiting = "rows waiting for another try"
        case inFlight = "rows in flight"
        case awaitingSync = "rows ahead of their sync"
        case slots = "connection slots"
        case submissions
        case chunks = "chunks ahead"
        case templates
        case personalTemplates = "personal templates"
        case events
        case addresses
        case reasons = "unknown reasons"
        case reasonNumbers = "numbers of unknown reasons"
        case handoffRows = "rows between reactors"
        case handoffFieldValues = "pieces between reactors"
        case outgoing = "bytes to go out"
        case streams
        case control = "control bytes"
        case parts = "requests in parts"
        case bodies = "response bodies"
    }

    package let kind: Kind
    package let count: Int
    /// The maximum count.
    package let limit: Int
}
