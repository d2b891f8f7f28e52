import Testing

@testable import BroadsideCampaigns

/// The text that a person must type to confirm a run.
@Suite struct ListSizeTests {
    @Test func `A counted list is confirmed by its number alone`() {
        let size = ListSize.exact(12_345)
        for typed in ["12345", "12,345", "12.345", "12'345", " 12_345 "] {
            #expect(size.isConfirmed(by: typed), "\(typed)")
        }
        for typed in ["", "yes", "about 12345", "1234", "123456", "-12345"] {
            #expect(!size.isConfirmed(by: typed), "\(typed)")
        }
    }

    /// The number alone would say that the person knows it.
    @Test func `An estimate is confirmed by its rounded number with the word about`() {
        let size = ListSize.about(33_456_789, fromBytes: 2_147_483_648)
        for typed in ["about 33000000", "About 33,000,000"] {
            #expect(size.isConfirmed(by: typed), "\(typed)")
        }
        for typed in ["33000000", "33,000,000", "about 33456789", "about", "yes", ""] {
            #expect(!size.isConfirmed(by: typed), "\(typed)")
        }
    }

    @Test func `A list of unknown size is confirmed by yes`() {
        #expect(ListSize.unknown.isConfirmed(by: "Yes"))
        #expect(!ListSize.unknown.isConfirmed(by: "y"))
    }
}
