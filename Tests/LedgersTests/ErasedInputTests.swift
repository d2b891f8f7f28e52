import BroadsideLists
import BroadsideTestSupport
import Testing

@testable import BroadsideLedgers

/// Standard input beside the ledger's copy of the list, in which `ledger forget` replaced letters and digits.
@Suite struct ErasedInputTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func difference(given: String, kept: String) throws -> String? {
        let paths = (
            try directory.write(given, to: "given"), try directory.write(kept, to: "kept")
        )
        return try SpooledInput.difference(
            of: ListBytes(opening: paths.0, option: "tokens"),
            from: ListBytes(opening: paths.1, option: "tokens"),
            isErased: SpooledInput.isErased)
    }

    @Test(arguments: [
        ("ab12\ncd34\n", "ab12\n****\n"),
        ("name,ab12\n", "****,****\n"),
        ("Zoë;<ab 12>\n", "****;<** **>\n"),
        ("a*b\n", "a*b\n"),
        ("a*b\n", "***\n"),
    ])
    func `The list is recognized whatever was erased from the copy`(
        given: String, kept: String
    ) throws {
        #expect(try difference(given: given, kept: kept) == nil)
    }

    @Test(arguments: [
        ("ab12\ncd34\n", "ab12\ncd35\n", "byte 9 differs"),
        ("ab12\ncd34\n", "****\ncd35\n", "byte 9 differs; rows that"),
        ("ab1\n\n", "****\n", "byte 4 differs; rows that"),
        ("ab1,\n", "****\n", "byte 4 differs; rows that"),
        ("****\n", "ab12\n", "byte 1 differs"),
        ("ab12\n", "****\n****\n", "it ends after 5 bytes; rows that"),
        ("ab12\ncd34\n", "****\n", "it continues after 5 bytes; rows that"),
    ])
    func `Another list is recognized beside erased rows`(
        given: String, kept: String, says: String
    ) throws {
        let found = try difference(given: given, kept: kept) ?? ""
        #expect(found.hasPrefix(says), "\(found)")
        #expect(found.contains("ledger forget") == says.contains("rows"), "\(found)")
    }
}
