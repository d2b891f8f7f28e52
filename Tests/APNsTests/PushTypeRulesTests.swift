import BroadsideAPNs
import Foundation
import Testing

/// The table of push types in the documents is that of the code.
@Suite struct PushTypeRulesTests {
    /// Columns of a row: type, topic, priorities, bytes, credential.
    static let rows: [[String]] = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = root.appending(path: "docs/how-to/push-types.md")
        let text = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { $0.contains(" bytes |") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }()

    @Test func `The page lists each push type once`() {
        #expect(Self.rows.map { $0[0] } == PushType.allCases.map { "`\($0.rawValue)`" })
    }

    @Test(arguments: PushType.allCases)
    func `A push type's row has its suffix, priorities, size and credential`(
        _ type: PushType
    ) throws {
        let row = try #require(Self.rows.first { $0[0] == "`\(type.rawValue)`" })
        let rules = type.rules
        #expect(row[1].contains("+ `") == (rules.topicSuffix != nil))
        if let suffix = rules.topicSuffix { #expect(row[1].hasSuffix("+ `\(suffix)`")) }
        let numbers = row[2].prefix { $0 != ";" }.split { !$0.isNumber }.map(String.init)
        #expect(numbers == rules.priorities.all.map { "\($0.rawValue)" })
        #expect(row[3] == "\(rules.maximumPayloadCount) bytes")
        switch rules.credential {
        case .any: #expect(row[4].hasPrefix("key or certificate"))
        case .providerToken: #expect(row[4] == "key only")
        case .managementCertificate: #expect(row[4] == "MDM push certificate")
        }
        #expect(type.defaultPriority == rules.priorities.all.first)
    }
}
