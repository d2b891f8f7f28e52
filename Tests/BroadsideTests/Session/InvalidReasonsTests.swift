import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideCampaigns

/// What the refusal of a list says about the reasons of its invalid rows.
@Suite struct InvalidReasonsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Refusal of a list that has the given rows, then 60 rows in order.
    private func refusal(_ rows: [String], then count: Int = 60) throws -> String? {
        let text =
            "token,name\n"
            + (rows + (0..<count).map { "\(hexToken($0)),Ann" }).joined(separator: "\n") + "\n"
        let path = try directory.write(text, to: "list.csv")
        return try HostedRun.$current.withValue(HostedRun { _ in }) {
            try TokensCheck(TokensOptions(tokens: path), countsDuplicates: false).refusal?.message
        }
    }

    private static let odd = String(repeating: "a", count: 31) + ",Ann"
    private static let long = hexToken(900) + ",Ann,more"

    @Test(arguments: [60, 2_000])
    func `A list with several reasons is refused with their counts and the most frequent one`(
        count: Int
    ) throws {
        let rows = [Self.odd] + [String](repeating: Self.long, count: 150)
        let message = try #require(try refusal(rows, then: count))
        // Rows after the first 1,000 do not count.
        let late = try refusal(rows + (0..<849).map { "\(hexToken($0)),Ann" } + [Self.odd], then: 9)
        if count > 1_000 { #expect(late == message) }
        for words in [
            "rows read are invalid (150 MalformedRow, 1 MalformedToken), the row on line 3",
            ": does it have more fields than the header",
        ] { #expect(message.contains(words), "\(message)") }
        #expect(!message.contains("digits"), "\(message)")
    }

    @Test func `A list with one reason is refused without counts of reasons`() throws {
        let message = try #require(try refusal([String](repeating: Self.long, count: 20)))
        #expect(message.contains("rows read are invalid, the row on line 2"), "\(message)")
    }

    @Test func `A list without a valid row is refused with the counts of its reasons`() throws {
        let message = try #require(try refusal([Self.odd, Self.long, Self.long], then: 0))
        let words = "all of its 3 rows are invalid (2 MalformedRow, 1 MalformedToken), the row on"
        #expect(message.contains(words), "\(message)")
    }

    @Test func `Of two reasons that are equally frequent, the first row's is explained`() throws {
        let message = try #require(try refusal([Self.odd, Self.long], then: 0))
        let words = "(1 MalformedToken, 1 MalformedRow), line 2 is "
        #expect(message.contains(words), "\(message)")
    }

    @Test func `Advice gets a period before the next sentence, unless it is a question`() throws {
        let question = try #require(try refusal([String](repeating: Self.long, count: 20)))
        #expect(question.contains("MiB? If these rows need not be sent"), "\(question)")
        let spark = hexToken(900) + ",\"An\\\"n\""
        let sentence = try #require(try refusal([String](repeating: spark, count: 20)))
        #expect(
            sentence.contains("option(\"escape\", \"\\\"\"). If these rows need not be sent"),
            "\(sentence)")
        let alone = try #require(try refusal([spark], then: 0))
        #expect(alone.hasSuffix("option(\"escape\", \"\\\"\")"), "\(alone)")
    }
}
