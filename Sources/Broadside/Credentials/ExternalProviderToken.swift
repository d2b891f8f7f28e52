internal import BroadsideAPNs
import BroadsideEngine
import BroadsideSupport
internal import Glibc

/// A provider token that was made elsewhere, and the file in which it comes: whoever makes it
/// writes a new one there before the old one is an hour old.
struct ExternalProviderToken: Sendable {
    /// What tells one state of the file from the next.
    struct Mark: Equatable, Sendable {
        private var inode: UInt64
        private var size: Int
        private var seconds: Int
        private var nanoseconds: Int

        /// nil where there is no such file.
        init?(path: String) {
            guard let status = SystemCall.status(path) else { return nil }
            inode = UInt64(status.st_ino)
            size = Int(status.st_size)
            seconds = Int(status.st_mtim.tv_sec)
            nanoseconds = Int(status.st_mtim.tv_nsec)
        }
    }

    let path: String
    /// The file's state before it was read.
    let mark: Mark?
    let claims: ProviderTokenClaims
    /// `bearer ...`.
    let authorization: [UInt8]

    /// Reads the file and checks what can be checked without the key.
    ///
    /// - Parameter warnings: What is most likely a mistake is appended.
    static func read(
        _ path: String, nowSeconds: UInt64, warnings: inout [String]
    ) throws(BroadsideError) -> ExternalProviderToken {
        let mark = Mark(path: path)
        let bytes = try readSecret(path, option: "auth-token-file", limit: 8192, &warnings)
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
        let token = Array(bytes.drop { blanks.contains($0) }.reversed())
        let text = Array(token.drop { blanks.contains($0) }.reversed())
        if let problem = Self.otherKind(text) {
            throw .usage("auth-token-file", "\(path): \(problem)")
        }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw .usage(
                "auth-token-file",
                "\(path): no provider token: three parts with dots between, as "
                    + "a JWT has")
        }
        guard let parsed = try? ProviderTokenClaims.parse(text) else {
            throw .usage(
                "auth-token-file",
                "\(path): no provider token for APNs: alg ES256, kid and iss of "
                    + "10 characters, iat in seconds, all in base64url")
        }
        if parsed.hasTextualIssueTime {
            warnings.append(
                "--auth-token-file \(path): iat is a string: APNs accepts it, RFC 7519 requires a "
                    + "number")
        }
        let issuedAt = parsed.claims.issuedAtUnixSeconds
        if issuedAt + ProviderTokenAge.expirySeconds < nowSeconds {
            warnings.append(
                "--auth-token-file \(path) is \(ageText(nowSeconds - issuedAt)) old: APNs accepts tokens "
                    + "for an hour, so make a new one")
        } else if issuedAt > nowSeconds + ProviderTokenAge.expirySeconds {
            warnings.append(
                "--auth-token-file \(path) was made \(ageText(issuedAt - nowSeconds)) in the "
                    + "future: check the clocks here and where it was made")
        }
        return ExternalProviderToken(
            path: path, mark: mark, claims: parsed.claims,
            authorization: ProviderTokenClaims.authorization(text))
    }
}

extension ExternalProviderToken {
    /// What a file is that is near to a provider token; nil if it is none of those.
    private static func otherKind(_ text: [UInt8]) -> String? {
        let words = String(decoding: text.prefix(64), as: UTF8.self)
        if words.contains("PRIVATE KEY-----") {
            return
                "no provider token but a key, which signs them: give it with --auth-key, --key-id "
                + "and --team-id"
        }
        return words.lowercased().hasPrefix("bearer ")
            ? "no provider token: leave 'bearer' out, and write the token alone" : nil
    }
}

/// Looks once a second whether there is a new token, and gives it to the run.
struct ExternalProviderTokenWatch {
    /// What was found where the file changed.
    struct Reading: Sendable {
        let mark: ExternalProviderToken.Mark
        /// nil: it can't be read, which the last warning says.
        var token: ExternalProviderToken?
        var warnings: [String] = []
    }

    private(set) var token: ExternalProviderToken
    private(set) var lastMark: ExternalProviderToken.Mark?
    private var nextCheck: UInt64

    /// nil where the credential is of another kind.
    init?(_ credential: Credential, now: Now) {
        guard case .suppliedToken(let token) = credential else { return nil }
        self.token = token
        lastMark = token.mark
        nextCheck = now.nanoseconds + second
    }

    /// Whether it is time to look at the file.
    func isDue(_ now: Now) -> Bool { now.nanoseconds >= nextCheck }

    /// A look has begun: the next one is due in a second.
    mutating func wait(_ now: Now) { nextCheck = now.nanoseconds + second }

    /// A file that is being replaced may be missing or half for a moment: the token in use stays.
    ///
    /// - Parameters:
    ///   - reading: What was found.
    ///   - now: The time.
    ///   - coordinator: Whose requests carry the token.
    mutating func take(_ reading: Reading, _ now: Now, coordinator: RunCoordinator) {
        lastMark = reading.mark
        if let found = reading.token {
            if found.authorization != token.authorization {
                coordinator.take(
                    authorization: found.authorization,
                    issuedAt: found.claims.issuedAtUnixSeconds, now)
            }
            token = found
        }
        for warning in reading.warnings { standardErrorLine("broadside: warning: \(warning)") }
    }
}

extension ExternalProviderTokenWatch.Reading? {
    /// Reads the file if it changed; may wait for its disk. A pipe is read at the start only.
    ///
    /// - Parameters:
    ///   - token: The one in use.
    ///   - lastMark: The file's state before it was read last.
    /// - Returns: nil where it is as it was, or missing.
    static func read(
        _ token: ExternalProviderToken, since lastMark: ExternalProviderToken.Mark?
    ) -> Self {
        guard let mark = ExternalProviderToken.Mark(path: token.path), mark != lastMark else {
            return nil
        }
        var reading = ExternalProviderTokenWatch.Reading(mark: mark)
        do throws(BroadsideError) {
            guard !isPipe(token.path) else {
                throw .usage(
                    "auth-token-file", "\(token.path) is a pipe, which is read at the start only")
            }
            let found = try ExternalProviderToken.read(
                token.path, nowSeconds: Clock.now().wallMilliseconds / 1000,
                warnings: &reading.warnings)
            // "One connection, one team": and the campaign's topic is the first team's.
            guard found.claims.teamID == token.claims.teamID else {
                throw .usage(
                    "auth-token-file", "\(token.path): the new token is of another team")
            }
            reading.token = found
        } catch {
            reading.warnings.append("\(error.message); the token before it stays in use")
        }
        return reading
    }
}

/// Minutes, and days of an age that nobody counts in minutes.
private func ageText(_ seconds: UInt64) -> String {
    let minutes = seconds / 60
    return minutes < 2 * 24 * 60
        ? "\(grouped(minutes)) minutes" : "\(grouped(minutes / (24 * 60))) days"
}
