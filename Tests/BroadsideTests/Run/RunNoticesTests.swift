import BroadsideEngine
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// Events about changes in a run.
@Suite struct RunNoticesTests {
    private let now = Now(nanoseconds: second, wallMilliseconds: 1_800_000_000_000)

    @Test func `A provider token that APNs refused is not called a new one in use`() {
        let renewed = RunNotices.tokenChange(returnedUntil: nil, now)
        #expect(renewed.kind == .tokenRenewed && renewed.level == .notice)
        let until: UInt64 = 1_800_001_200
        let returned = RunNotices.tokenChange(returnedUntil: until, now)
        #expect(returned.kind == .tokenHeld && returned.level == .warning)
        #expect(
            returned.message.hasPrefix(
                "the previous provider token is in use again until \(timeText(until * 1000)), "
                    + "because APNs responded TooManyProviderTokenUpdates to the new one"),
            "\(returned.message)")
    }
}
