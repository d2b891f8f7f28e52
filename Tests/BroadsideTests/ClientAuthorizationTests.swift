import BroadsideAPNs
import BroadsideCampaigns
import BroadsideTLS
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import Broadside

struct ClientAuthorizationTests {
    private final class Log: RunLogger {
        private let messages = Mutex<[String]>([])

        func log(_ entry: RunLogEntry) { messages.withLock { $0.append(entry.message) } }

        func take() -> [String] {
            messages.withLock { messages in
                defer { messages = [] }
                return messages
            }
        }
    }

    private let log = Log()
    private let directory: TemporaryDirectory
    private let authority: TestAuthority

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
    }

    private var file: String { "\(directory.path)/token" }

    private func write(_ token: String) throws {
        try? FileManager.default.removeItem(atPath: file)
        try directory.write(token, to: "token")
        chmod(file, 0o600)
    }

    /// A token that was issued some minutes ago.
    private func token(minutesAgo minutes: Int, teamID: String = Campaign.teamID) throws -> String {
        try authority.providerToken(
            issuedAt: Int(Date().timeIntervalSince1970) - minutes * 60, teamID: teamID,
            in: directory)
    }

    private func authorization() throws -> ClientAuthorization {
        var warnings: [String] = []
        let token = try ExternalProviderToken.read(
            file, nowSeconds: UInt64(Date().timeIntervalSince1970), warnings: &warnings)
        return try ClientAuthorization(.suppliedToken(token), logger: log, nowSeconds: 0)
    }

    private func text(_ authorization: ClientAuthorization) -> String? {
        authorization.value.map { String(decoding: $0.dropFirst(7), as: UTF8.self) }
    }

    @Test
    func `A token file without a usable token leaves the previous token in use, with a warning`()
        throws
    {
        let first = try token(minutesAgo: 10)
        try write(first)
        var authorization = try authorization()
        var now: UInt64 = 0
        func warning(_ change: () throws -> Void) throws -> String {
            try change()
            now += 60
            authorization.renew(now)
            #expect(text(authorization) == first)
            return log.take().joined()
        }
        #expect(try warning { try write("text") }.contains("not a provider token"))
        let expired = try token(minutesAgo: 90)
        #expect(try warning { try write(expired) }.contains("older token than before"))
        #expect(
            try warning { try write(token(minutesAgo: 1, teamID: "OTHERTEAM0")) }
                .contains("a token of team OTHERTEAM0"))
        #expect(try warning { try FileManager.default.removeItem(atPath: file) } == "")
        #expect(try warning {}.contains("has disappeared"))
        #expect(try warning { mkfifo(file, 0o600) }.contains("is a pipe"))

        let second = try token(minutesAgo: 1)
        try write(second)
        authorization.renew(now + 59)
        #expect(text(authorization) == first)
        authorization.renew(now + 60)
        #expect(text(authorization) == second && log.take() == [])
    }

    @Test
    func `After TooManyProviderTokenUpdates, the previous token is in use for 20 minutes`() throws {
        let pem = [UInt8](try Data(contentsOf: URL(filePath: authority.authKey)))
        let credential = Credential.key(
            try SigningKey(pem: pem), keyID: Campaign.keyID, teamID: Campaign.teamID)
        let start = 1_000_000 * ProviderTokenAge.windowSeconds
        func made(_ nowSeconds: UInt64) throws -> ClientAuthorization {
            try ClientAuthorization(credential, logger: nil, nowSeconds: nowSeconds)
        }
        var authorization = try made(start + 600)
        let first = authorization.value
        let change = start + ProviderTokenAge.windowSeconds + ProviderTokenAge.changeSeconds
        authorization.renew(change)
        let second = authorization.value
        #expect(second != first)

        let isChanged = authorization.freeze(after: second, change)
        #expect(isChanged && authorization.value == first)
        let isOther = authorization.freeze(after: second, change + 1)
        #expect(isOther, "the next push that had the second token")
        authorization.replace(with: try made(change + 1))
        authorization.renew(change + ProviderTokenAge.freezeSeconds - 1)
        #expect(authorization.value == first)
        authorization.renew(change + ProviderTokenAge.freezeSeconds)
        #expect(authorization.value == second)
    }
}
