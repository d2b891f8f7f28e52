import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What each answer of APNs means for its row, for the connection that carried it and for the
/// campaign: every reason that Apple has documented, and some that nobody has.
@Suite(.timeLimit(.minutes(60)))
struct AnswerMeaningTests {
    /// What becomes of the row.
    enum Row {
        case rejected
        /// Sent once, or twice, and not settled.
        case remains(requests: Int)
        /// Sent again, and accepted.
        case again(counted: Bool)
        /// Sent once; it may have arrived.
        case unknown
    }

    /// What becomes of the connection.
    enum Connection {
        case stays
        case replacedAtOnce
        /// Replaced, but not within the first second.
        case replacedAfterPause
    }

    /// What becomes of a campaign that gets no other answer.
    enum Campaign {
        case goesOn
        /// The guard stops it after so many answers as it was told.
        case refused
        /// One provider token is made, then it stops.
        case clock
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var status: Int
        var reason: String?
        var row: Row
        var connection: Connection
        var campaign: Campaign

        init(
            _ status: Int, _ reason: String?, _ row: Row, _ connection: Connection,
            _ campaign: Campaign
        ) {
            self.status = status
            self.reason = reason
            self.row = row
            self.connection = connection
            self.campaign = campaign
        }

        var testDescription: String { "\(status) \(reason ?? "without a reason")" }
    }

    static let cases: [Case] =
        [
            "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
            "DuplicateHeaders", "InvalidPushType", "MissingTopic", "PayloadEmpty", nil, "NewReason",
        ].map { Case(400, $0, .rejected, .stays, .refused) }
        + [
            Case(404, "BadPath", .rejected, .stays, .refused),
            Case(404, "NewReason", .rejected, .stays, .refused),
            Case(405, "MethodNotAllowed", .rejected, .stays, .refused),
            // Another server's.
            Case(302, nil, .remains(requests: 1), .stays, .refused),
            Case(401, nil, .remains(requests: 1), .stays, .refused),
            Case(404, nil, .remains(requests: 1), .stays, .refused),
            Case(407, "NewReason", .remains(requests: 1), .stays, .refused),
            Case(418, nil, .remains(requests: 1), .stays, .refused),
            // Dead and bad tokens.
            Case(410, "Unregistered", .rejected, .stays, .goesOn),
            Case(410, "ExpiredToken", .rejected, .stays, .goesOn),
            Case(400, "ExpiredToken", .rejected, .stays, .goesOn),
            Case(410, nil, .rejected, .stays, .refused),
            Case(410, "NewReason", .rejected, .stays, .goesOn),
            // Of a payload that all rows have.
            Case(413, "PayloadTooLarge", .rejected, .stays, .refused),
            Case(413, nil, .rejected, .stays, .refused),
            Case(400, "MissingDeviceToken", .rejected, .stays, .goesOn),
            // The first answers, all like that: the environment is wrong, or the topic.
            Case(400, "BadDeviceToken", .rejected, .stays, .refused),
            Case(400, "DeviceTokenNotForTopic", .rejected, .stays, .refused),
            // The credential.
            Case(400, "TopicDisallowed", .remains(requests: 1), .stays, .refused),
            Case(403, "Forbidden", .remains(requests: 1), .stays, .refused),
            Case(403, "MissingProviderToken", .remains(requests: 1), .stays, .refused),
            Case(403, "BadEnvironmentKeyIdInToken", .remains(requests: 1), .stays, .refused),
            Case(403, "BadEnvironmentKeyInToken", .remains(requests: 1), .stays, .refused),
            Case(403, "NewReason", .remains(requests: 1), .stays, .refused),
            Case(403, nil, .remains(requests: 1), .stays, .refused),
            Case(403, "BadCertificate", .remains(requests: 1), .replacedAtOnce, .refused),
            Case(
                403, "BadCertificateEnvironment", .remains(requests: 1), .replacedAtOnce, .refused),
            Case(403, "InvalidProviderToken", .again(counted: true), .stays, .refused),
            Case(403, "ExpiredProviderToken", .again(counted: false), .replacedAtOnce, .clock),
            Case(429, "TooManyProviderTokenUpdates", .again(counted: false), .stays, .goesOn),
            // Busy, and in trouble.
            Case(429, "TooManyRequests", .again(counted: true), .stays, .goesOn),
            Case(429, nil, .again(counted: true), .stays, .goesOn),
            Case(400, "IdleTimeout", .again(counted: true), .replacedAfterPause, .goesOn),
            Case(403, "UnrelatedKeyIdInToken", .again(counted: true), .replacedAfterPause, .goesOn),
            Case(500, "InternalServerError", .again(counted: true), .replacedAfterPause, .goesOn),
            Case(500, nil, .again(counted: true), .replacedAfterPause, .goesOn),
            Case(507, "NewReason", .again(counted: true), .replacedAfterPause, .goesOn),
            Case(503, "ServiceUnavailable", .again(counted: true), .replacedAfterPause, .goesOn),
            Case(503, "Shutdown", .again(counted: true), .replacedAfterPause, .goesOn),
            // What APNs never says. Taken, but by whom? Not processed.
            Case(201, nil, .unknown, .stays, .refused),
            Case(202, "NewReason", .unknown, .stays, .refused),
            Case(204, nil, .unknown, .stays, .refused),
            Case(408, nil, .again(counted: true), .replacedAtOnce, .goesOn),
            Case(421, nil, .again(counted: true), .replacedAtOnce, .goesOn),
            Case(425, nil, .again(counted: true), .stays, .goesOn),
            // Gateways that passed the request on.
            Case(502, nil, .unknown, .replacedAfterPause, .goesOn),
            Case(502, "NewReason", .unknown, .replacedAfterPause, .goesOn),
            Case(504, nil, .unknown, .replacedAfterPause, .goesOn),
        ]

    @Test(arguments: cases)
    func `A status among accepted responses has its documented effect`(_ answer: Case) throws {
        // Two streams at a time: what is left when the answer comes needs a connection.
        let victim = 7
        let run = try ScriptedRun(rows: 20, tokenAge: 1800)
        run.maxStreams = 2
        var toldAt: UInt64?
        var requestsBefore = 0
        run.reply = { request in
            guard ScriptedRun.row(request) == victim, toldAt == nil else { return .status(200) }
            toldAt = request.time
            requestsBefore = run.requests.count
            return .status(answer.status, answer.reason)
        }
        run.run()

        let rows = try run.rows()
        let told = try #require(toldAt)
        let again = run.requests(row: victim)
        for row in 0..<20 where row != victim { #expect(rows[row].state == .accepted) }
        switch answer.row {
        case .rejected:
            #expect(rows[victim].state == .rejected && rows[victim].status == answer.status)
            #expect(again.count == 1)
            if let reason = answer.reason { #expect(rows[victim].reason == reason) }
        case .remains(let requests):
            #expect(rows[victim].state == .remaining)
            #expect(again.count == requests && run.heldBack == 1)
        case .again(let counted):
            #expect(rows[victim].state == .accepted)
            #expect(again.count == 2 && rows[victim].attempts == (counted ? 2 : 1))
        case .unknown:
            #expect(rows[victim].state == .unknown && rows[victim].status == answer.status)
            #expect(rows[victim].reason == "ConnectionLost" && again.count == 1)
        }

        switch answer.connection {
        case .stays:
            #expect(run.links.count == 1)
        case .replacedAtOnce:
            #expect(run.links.count == 2 && run.links[1].begun == told)
        case .replacedAfterPause:
            #expect(run.links.count == 2)
            let pause = run.links[1].begun - told
            #expect(pause >= 3 * second / 4 && pause <= second + 60 * millisecond)
        }
        if run.links.count == 2 {
            // What was under way, and nothing more.
            let old = run.requests.enumerated().filter { $0.element.connection == 0 }
            #expect(old.allSatisfy { $0.offset < requestsBefore + 2 })
        }
        #expect(run.coordinator.stopCause == nil)
    }

    @Test(arguments: cases)
    func `A status as the only response has its documented effect`(_ answer: Case) throws {
        let run = try ScriptedRun(rows: 10, tokenAge: 1800, abortAfter: 4) { settings in
            settings.retryPolicy = RetryPolicy(maximumAttempts: 2, retryForNanoseconds: 0)
            settings.giveUpAfter = 3600 * second
        }
        run.maxStreams = 1
        run.reply = { _ in .status(answer.status, answer.reason) }
        run.run(for: 900 * second)

        switch answer.campaign {
        case .goesOn:
            #expect(run.coordinator.stopCause == nil)
            if case .rejected = answer.row {
                #expect(try run.rows().allSatisfy { $0.state == .rejected })
            }
            if case .unknown = answer.row {
                #expect(try run.rows().allSatisfy { $0.state == .unknown })
                #expect(run.requests.count == 10)
            }
        case .refused:
            #expect(run.requests.count == 4 && run.isFinished)
            guard let cause = run.coordinator.stopCause, cause.isAbort else {
                Issue.record("\(String(describing: run.coordinator.stopCause))")
                return
            }
            let message = run.lastLine(cause)
            #expect(message.contains("\(answer.status)"))
            // A strange success does not refuse the row, whatever its reason.
            if let reason = answer.reason, answer.status >= 300 {
                #expect(message.contains(reason))
            }
            // What is part of the campaign, no resume puts right.
            var isForGood = answer.status >= 400 && answer.status != 403
            if case .remains = answer.row { isForGood = answer.reason == "TopicDisallowed" }
            #expect(message.contains("begin a new ledger") == isForGood)
            if case .unknown = answer.row {
                #expect(try run.rows().count { $0.state == .unknown } == 4)
            }
        case .clock:
            #expect(run.renewals.count == 1 && run.isFinished)
            guard let cause = run.coordinator.stopCause, cause.isAbort else {
                Issue.record("\(String(describing: run.coordinator.stopCause))")
                return
            }
            let message = run.lastLine(cause)
            #expect(message.contains("check the clock"))
            #expect(try run.rows().allSatisfy { $0.state == .remaining })
        }
        // Not one was taken for accepted.
        #expect(try run.rows().allSatisfy { $0.state != .accepted })
    }

    @Test
    func `A 413 for the common payload refuses the campaign although rows were accepted`() throws {
        let run = try ScriptedRun(rows: 20, tokenAge: 1800, abortAfter: 4)
        run.maxStreams = 1
        run.reply = { request in
            ScriptedRun.row(request) < 5 ? .status(200) : .status(413, "PayloadTooLarge")
        }
        run.run()
        #expect(run.requests.count == 9 && run.isFinished)
        #expect(run.coordinator.stopCause?.isAbort == true)
    }

    @Test
    func `A 411 is called LengthRequired in the ledger and in the last line, whatever its text`()
        throws
    {
        let run = try ScriptedRun(rows: 10, tokenAge: 1800, abortAfter: 4)
        run.maxStreams = 1
        run.reply = { _ in .status(411, "NewReason") }
        run.run()
        let message = run.lastLine(try #require(run.coordinator.stopCause))
        #expect(message.contains("411 LengthRequired") && !message.contains("NewReason"))
        let refused = try run.rows().filter { $0.state == .rejected }
        #expect(refused.count == 4 && refused.allSatisfy { $0.reason == "LengthRequired" })
    }
}
