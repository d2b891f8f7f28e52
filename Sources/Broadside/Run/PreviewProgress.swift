import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Requests that a preview has shown of each payload, topic and arm.
struct PreviewProgress {
    private let limit: Int
    private let payloadNames: [String]
    private let armNames: [String]
    private let hasTopics: Bool
    private var shown: [Int]
    private var shownTopics: [UInt8: Int] = [:]
    /// Shown requests by the arm's number. The holdout has none, because its devices get nothing.
    private var shownArms: [UInt8: Int]

    /// - Parameters:
    ///   - limit: Limit on the requests of a payload, a topic or an arm.
    ///   - payloads: Names of the payloads, in the order of their numbers.
    ///   - arms: Names of the arms, in the order of their numbers.
    ///   - hasTopics: Whether each row names its topic.
    init(limit: Int, payloads: [String], arms: [String], hasTopics: Bool) {
        self.limit = limit
        payloadNames = payloads
        armNames = arms
        self.hasTopics = hasTopics
        shown = [Int](repeating: 0, count: payloads.count)
        shownArms = Dictionary(
            uniqueKeysWithValues: arms.enumerated()
                .filter { $0.element != ArmSplit.holdoutName }
                .map { (UInt8($0.offset + 1), 0) })
    }

    /// Whether fewer requests of a payload or an arm are shown than were asked for.
    var lacksRequests: Bool {
        shown.contains { $0 < limit } || shownArms.contains { $0.value < limit }
    }

    /// Whether further rows may give requests to show. Only the list shows which topics exist.
    var needsMore: Bool { hasTopics || lacksRequests }

    /// Whether fewer requests with the payload, the topic or the arm of this one are shown than
    /// were asked for.
    func isWanted(_ shape: PayloadRenderer.Shape) -> Bool {
        shown[Int(shape.template)] < limit
            || hasTopics && shownTopics[shape.topic, default: 0] < limit
            || shownArms[shape.arm].map { $0 < limit } ?? false
    }

    /// Counts a request that is shown.
    mutating func noteShown(_ shape: PayloadRenderer.Shape) {
        shown[Int(shape.template)] += 1
        shownTopics[shape.topic, default: 0] += 1
        shownArms[shape.arm]? += 1
    }

    /// Lines about the arms and payloads of which no request is shown.
    ///
    /// - Parameter searched: Rows that were read, such as `the list`.
    func unseen(in searched: String) -> [String] {
        var lines: [String] = []
        for (arm, name) in armNames.enumerated() where shownArms[UInt8(arm + 1)] == 0 {
            lines.append("no row of \(searched) is in arm \(name)")
        }
        for (payload, name) in payloadNames.enumerated() where shown[payload] == 0 {
            lines.append("no row of \(searched) gets \(printable(name))")
        }
        return lines
    }
}
