import BroadsideAPNs
import Testing

@testable import BroadsideEngine
@testable import BroadsideSimulator

/// A day of a fleet against the simulator's rules: clocks that differ, restarts, one connection and many.
struct FleetDayTests {
    private static let day: UInt64 = 1_800_000_000
    /// Nothing is signed here, so any bytes of a signature's length will do.
    private static let signature = [UInt8](repeating: 7, count: 64)

    private static func claims(_ issuedAt: UInt64) -> ProviderTokenClaims {
        ProviderTokenClaims(
            keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAtUnixSeconds: issuedAt)
    }

    /// A machine of the fleet: its clock, and the token of the process that runs on it.
    private struct Machine {
        var clockOffset: Int
        var life: ProviderTokenLife
        var connection = ConnectionCredential(hasCertificate: false)

        init(clockOffset: Int, at time: UInt64) {
            self.clockOffset = clockOffset
            life = ProviderTokenLife(nil)
            restart(time)
        }

        func local(_ time: UInt64) -> UInt64 { UInt64(Int(time) + clockOffset) }

        private func token(_ issuedAt: UInt64) -> ProviderTokenLife.Token {
            .init(
                value: Array("bearer ".utf8)
                    + ProviderTokenClaims.compactToken(
                        signingInput: FleetDayTests.claims(issuedAt).signingInput,
                        signature: FleetDayTests.signature),
                issuedAt: issuedAt)
        }

        /// Another process, which knows nothing of the one before it.
        mutating func restart(_ time: UInt64) {
            life = ProviderTokenLife(token(ProviderTokenAge.issueTime(at: local(time))))
            connection = ConnectionCredential(hasCertificate: false)
        }

        mutating func look(_ time: UInt64) {
            life.requestIfDue(local(time))
            if let issuedAt = life.renewal(local(time)) { life.take(token(issuedAt), local(time)) }
        }
    }

    @Test func `Over a day tokens are never renewed too often and never too old`() throws {
        var verifier = ProviderTokenVerifier(keys: [
            ProviderKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ") { $1 == Self.signature }
        ])
        func refusal(
            _ token: ProviderTokenLife.Token, _ credential: inout ConnectionCredential,
            _ now: UInt64
        ) -> Reason? {
            token.value.withUnsafeBytes {
                credential.refusal(
                    authorization: RawSpan(_unsafeBytes: $0), verifier: &verifier,
                    nowUnixSeconds: now)
            }
        }
        var machines = [-300, -240, 0, 60, 300].map { Machine(clockOffset: $0, at: Self.day) }
        // All of them over one connection, as through a relay: the strictest view.
        var relay = ConnectionCredential(hasCertificate: false)
        var dates: Set<UInt64> = []
        for second in stride(from: 0 as UInt64, to: 86_400, by: 7) {
            let time = Self.day + second
            for index in machines.indices {
                if (second / 7 + UInt64(index) * 97) % 611 == 0 { machines[index].restart(time) }
                machines[index].look(time)
                let token = try #require(machines[index].life.current)
                dates.insert(token.issuedAt)
                #expect(token.issuedAt <= time && time < token.issuedAt + 55 * 60)
                let own = refusal(token, &machines[index].connection, time)
                let common = refusal(token, &relay, time)
                #expect(own == nil && common == nil)
            }
        }
        // One change in 30 minutes over all of them.
        #expect(dates.count == 49)
    }
}
