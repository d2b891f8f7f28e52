import BroadsideObservability
import BroadsideSupport

/// A request of an operator to a running send: one line of text.
enum ControlRequest: Equatable, Sendable {
    case status
    /// Requests per second; nil: unlimited.
    case rate(SendRate?)
    case pause
    case resume
    case stop

    /// Documented forms of a request, for messages.
    static let words = "status, rate N, pause, resume or stop"

    /// Parses a line.
    ///
    /// - Throws: One sentence that describes the error.
    init(_ line: String) throws(BroadsideError) {
        let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        switch (words.first, words.count) {
        case ("status", 1): self = .status
        case ("pause", 1): self = .pause
        case ("resume", 1): self = .resume
        case ("stop", 1): self = .stop
        case ("rate", 2):
            if words[1] == "unlimited" {
                self = .rate(nil)
                return
            }
            do throws(SendRate.Problem) {
                self = .rate(try SendRate(words[1], in: RunKeys.rates))
            } catch {
                throw .request(
                    "rate \(error.message)"
                        + (error.isRamp ? "" : ": write rate 5000, rate unlimited, or pause"))
            }
        case ("rate", _):
            throw .request("rate needs one number of requests per second: write rate 5000")
        case (nil, _):
            throw .request("an empty request: use \(Self.words)")
        default:
            throw .request("unknown request '\(words.joined(separator: " "))': use \(Self.words)")
        }
    }
}
