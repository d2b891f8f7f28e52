import BroadsideSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideCampaigns

/// Which values of `tokens dedupe --by` mean one user.
@Suite struct DedupeValueTests {
    /// Dedupes a list by its column `user`.
    ///
    /// - Returns: The numbers of the rows that stay, the warnings and the summary.
    private func dedupe(
        _ users: [String], name: String = "list.csv", tokens: [String]? = nil
    ) throws -> (kept: [Int], warnings: [String], summary: String) {
        let separator = name.hasSuffix("tsv") ? "\t" : ","
        let rows = users.enumerated().map { number, user in
            (tokens?[number] ?? String(format: "%064x", number)) + separator + user
        }
        return try dedupe(lines: ["token\(separator)user"] + rows, name)
    }

    private func dedupe(
        lines text: [String], _ name: String, by column: String = "user"
    ) throws -> (kept: [Int], warnings: [String], summary: String) {
        let path = FileManager.default.temporaryDirectory.path + "/dedupe-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(text.map { $0 + "\n" }.joined().utf8).write(
            to: URL(fileURLWithPath: "\(path)/\(name)"))
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        let summary = try HostedRun.$current.withValue(host) {
            try TokensDedupe.run(
                TokensOptions(tokens: "\(path)/\(name)"), output: "\(path)/out",
                rule: .init(column: column))
        }
        let output = String(
            decoding: try Data(contentsOf: URL(fileURLWithPath: "\(path)/out")), as: UTF8.self)
        let kept = output.split(separator: "\n").compactMap { row in
            row.split { ",\t:\"".contains($0) }.first { $0.count == 64 }.flatMap {
                Int($0, radix: 16)
            }
        }
        return (kept, lines.withLock { $0 }, summary)
    }

    @Test func `Invisible characters around a value do not make it another one`() throws {
        let found = try dedupe(["u1", "u1\u{a0}", "\u{feff}u1", "u1 \u{200b} ", "u2", "\u{200b}"])
        #expect(found.kept.count == 3 && found.kept.contains(4) && found.kept.contains(5))
    }

    @Test(arguments: ["csv", "tsv"])
    func `Rows with a word for a missing value stay, and the first of them is named`(
        format: String
    ) throws {
        let users = (0..<40).map { $0 % 2 == 0 ? "NULL" : "\($0 / 4)" }
        let found = try dedupe(users, name: "list.\(format)")
        #expect(found.kept.count == 30)
        #expect(
            found.warnings == [
                "broadside: warning: --by 'user': 20 rows have a word such as 'NULL', the first on "
                    + "line 2, and stay, because such a word means a missing value: if it is an ID, "
                    + "spell it differently"
            ])
        #expect(found.summary.contains("without a value in 'user': 20"), "\(found.summary)")
        let one = try dedupe(["7", " None ", "7"])
        #expect(one.kept == [0, 1])
        #expect(
            one.warnings.first?.contains("1 row has the word 'None', on line 3, and stays") == true)
    }

    @Test func `NA, as R writes a missing value, is not an ID`() throws {
        let found = try dedupe(["NA", "7", "NA", "na", "7", "na"])
        #expect(found.kept == [0, 1, 2, 3])
        #expect(
            found.warnings.count == 1
                && found.warnings[0].contains("2 rows have a word such as 'NA', the first on line"),
            "\(found.warnings)")
    }

    @Test func `Rows with numbers that a spreadsheet rounded stay, and the first of them is named`()
        throws
    {
        let found = try dedupe([
            "7", "1.23457E+11", "u+1", " 1.23457E+11 ", "1e+22", "7", "u+1", "+49157", "+49157",
        ])
        #expect(found.kept == [0, 1, 2, 3, 4, 7])
        #expect(
            found.warnings == [
                "broadside: warning: --by 'user': 3 rows have numbers that a spreadsheet rounded, such "
                    + "as '1.23457E+11', the first on line 3: such rows stay, because different IDs "
                    + "may have become one number; export the list again, and import that column as "
                    + "text into a spreadsheet"
            ])
        #expect(found.summary.contains("without a value in 'user': 3"), "\(found.summary)")
        #expect {
            try dedupe(["1.23457E+11", "", "NULL"])
        } throws: {
            ($0 as? BroadsideError)?.message.contains(
                "1 row has a number that a spreadsheet rounded ('1.23457E+11')") == true
        }
    }

    @Test func `Blanks around a value are ignored, and blanks alone are no value`() throws {
        let found = try dedupe(["7", " 7 ", " ", "\" \t\"", "", "8", "\"7 \"", "08"])
        #expect(found.kept == [0, 2, 3, 4, 5, 7])
        #expect(found.warnings.isEmpty, "\(found.warnings)")
        #expect(found.summary.contains("without a value in 'user': 3"), "\(found.summary)")
    }

    @Test func `Numbers with and without .0 are different values, and a warning names both`() throws
    {
        let found = try dedupe(["u7", "12", "12.0", " 12.0 ", "7"])
        #expect(found.kept == [0, 1, 2, 4])
        #expect(
            found.warnings == [
                "broadside: warning: --by 'user': line 4 has '12.0', but line 3 has '12', without .0: "
                    + "12 and 12.0 are different values, so a user may keep several rows: write all "
                    + "numbers in one form"
            ])
        for users in [
            ["12.0", "7.0"], ["12", "1.5"], ["u1.0", "12"], [".0", "12"], ["2.00", "12"],
        ] {
            #expect(try dedupe(users).warnings.isEmpty, "\(users)")
        }
    }

    @Test func `Rows with a JSON object or array stay, and the first of them is named`() throws {
        func rows(_ users: [String]) -> [String] {
            users.enumerated().map { number, user in
                "{\"token\":\"\(String(format: "%064x", number))\",\"user\":\(user)}"
            }
        }
        let object = #"{"$oid":"65a0"}"#
        let found = try dedupe(
            lines: rows(["7", object, "[1]", #""7""#, object, "null"]), "list.jsonl")
        #expect(found.kept == [0, 1, 2, 4, 5])
        #expect(
            found.warnings == [
                "broadside: warning: --by 'user': 3 rows have a JSON array or object, the first on "
                    + "line 2: such rows stay; to compare values inside, name a key, as in user.id"
            ])
        #expect(found.summary.contains("without a value in 'user': 4"), "\(found.summary)")
        #expect {
            try dedupe(lines: rows([object, object, "null"]), "list.jsonl")
        } throws: {
            "\($0)".contains("line 1 has an array or object: name a key inside it, as in user.id")
        }
        let path = try dedupe(lines: rows([object, object, "7"]), "list.jsonl", by: "user.$oid")
        #expect(path.kept == [0, 2])
    }

    @Test func `A value of more than 100 rows is a warning`() throws {
        let usual = (0..<300).map { "\($0 % 3)" }
        #expect(try dedupe(usual).warnings.isEmpty)
        #expect(
            try dedupe(["9", "1"] + usual).warnings == [
                "broadside: warning: --by 'user': 101 rows have the value '1', and only the one on line "
                    + "3 stays: if '1' is not the ID of one user, leave the field empty in these rows"
            ])
        let guests = Array(repeating: "guest", count: 150) + ["0", "2"]
        let found = try dedupe(usual + guests)
        #expect(found.kept == [0, 1, 2, 300])
        #expect(
            found.warnings.first?.contains(
                "150 rows have the value 'guest', and only the one on line 302 stays; 2 other values "
                    + "have more than 100 rows each") == true, "\(found.warnings)")
    }

    @Test func `Rows after a header with other columns are not deduplicated`() throws {
        let tokens = [0, 1, 2].map { String(format: "%064x", $0) }
        #expect(throws: BroadsideError.self) {
            try dedupe(["1", "token", "1"], tokens: [tokens[0], "user", tokens[2]])
        }
        let same = try dedupe(["1", "user", "1"], tokens: [tokens[0], "token", tokens[2]])
        #expect(same.warnings.count == 1 && same.warnings[0].contains("line 3 repeats the header"))
    }
}
