import Testing

@testable import BroadsideObservability

/// Sentences about receipts that are ignored.
@Suite struct ReceiptFindingsTests {
    private static func findings(_ count: UInt64) -> ReceiptFindings {
        var findings = ReceiptFindings(
            arms: [.init(name: "a", isHoldout: false, columns: 0)], columns: [], namesTokens: true)
        findings.receipts = count
        return findings
    }

    @Test(
        arguments: [
            (
                1,
                "1 is a later receipt of a device, 1 belongs to no row that was accepted or held out, "
                    + "1 came before the notification, 1 has no readable ID or time"
            ),
            (
                2,
                "2 are later receipts of a device, 2 belong to no row that was accepted or held out, "
                    + "2 came before the notification, 2 have no readable ID or time"
            ),
        ] as [(UInt64, String)])
    func `Ignored receipts are counted in the singular and in the plural`(
        count: UInt64, text: String
    ) {
        var findings = Self.findings(count * 4)
        (findings.repeated, findings.foreign) = (count, count)
        (findings.early, findings.unreadable) = (count, count)
        #expect(findings.leftOutText == text)
    }

    @Test func `The warning about a single receipt does not speak of several`() {
        var foreign = Self.findings(1)
        foreign.foreign = 1
        #expect(
            foreign.warnings.first?.hasPrefix("the only receipt does not belong to a row") == true)
        var early = Self.findings(1)
        early.early = 1
        #expect(early.warnings.first?.contains("is earlier than its notification") == true)
        let several = Self.findings(3)
        #expect(several.warnings.first?.hasPrefix("none of the 3 receipts belongs") == true)
    }
}
