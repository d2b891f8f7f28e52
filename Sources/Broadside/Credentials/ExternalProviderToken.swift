internal import BroadsideAPNs
import BroadsideEngine
internal import BroadsidePolicy
package import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// A provider token from another program, with its source. The source is a file or a command. The
/// other program replaces the file before the token is an hour old; the command prints a token.
package struct ExternalProviderToken: Sendable {
    /// Source of the token.
    package enum Source: Sendable {
        case file(String)
        case command(String)

        /// Option that names the source.
        var option: String {
            switch self {
            case .file: "auth-token-file"
            case .command: "auth-token-command"
            }
        }

        /// Advice to replace an expired token.
        var renewalAdvice: String {
            switch self {
            case .file: "put a new one into the file"
            case .command: "have the command print a new one"
            }
        }

        /// Error about the content of the source.
        fileprivate func error(_ problem: String) -> BroadsideError {
            switch self {
            case .file(let path): .usage(option, "\(path): \(problem)")
            case .command: .usage(option, "printed \(problem)")
            }
        }

        /// Subject of warnings about the token.
        fileprivate var subject: String {
            switch self {
            case .file(let path): "--\(option) \(path)"
            case .command: "the token of --\(option)"
            }
        }
    }

    /// Identifies one state of a token file, so that a change of the file is noticed.
    package struct Mark: Equatable, Sendable {
        private var inode: UInt64
        private var size: Int
        private var seconds: Int
        private var nanoseconds: Int

        /// Reads the state of a file; nil if the file does not exist.
        package init?(path: String) {
            guard let status = SystemCall.status(path) else { return nil }
            inode = UInt64(status.st_ino)
            size = Int(status.st_size)
            seconds = Int(status.st_mtim.tv_sec)
            nanoseconds = Int(status.st_mtim.tv_nsec)
        }
    }

    package let source: Source
    /// State of the file before it was read; nil if the token comes from a command.
    package let mark: Mark?
    let claims: ProviderTokenClaims
    /// Value of `authorization`: `bearer ...`.
    package let authorization: [UInt8]

    /// Size limit of the file or the command's output, bytes.
    static let byteLimit = 8_192

    /// Reads a token file and makes all checks that need no key.
    ///
    /// - Parameter warnings: Receives likely mistakes.
    package static func read(
        _ path: String, nowSeconds: UInt64, warnings: inout [String]
    ) throws(BroadsideError) -> ExternalProviderToken {
        let mark = Mark(path: path)
        let bytes = try readSecret(
            path, option: "auth-token-file", limit: byteLimit, &warnings)
        return try parse(bytes, .file(path), mark, nowSeconds: nowSeconds, warnings: &warnings)
    }

    /// Runs the command, unless `printed` already has its output, and checks the output.
    ///
    /// - Parameters:
    ///   - command: Command line.
    ///   - printed: Output, if the command was already run; nil: this function runs the command.
    ///   - shell: Runs the command.
    ///   - heedsSignals: Whether a pending stop signal ends the command. Set this only if no other
    ///     code takes signals while the command runs.
    ///   - nowSeconds: Seconds since 1970.
    ///   - warnings: Receives likely mistakes.
    static func run(
        _ command: String, printed: SecretBytes? = nil, by shell: ShellCommand = ShellCommand(),
        heedsSignals: Bool = true, nowSeconds: UInt64, warnings: inout [String]
    ) throws(BroadsideError) -> ExternalProviderToken {
        let source = Source.command(command)
        let bytes =
            if let printed {
                printed.copy
            } else {
                try SecretCommand.run(
                    command, option: source.option, limit: byteLimit, by: shell,
                    heedsSignals: heedsSignals)
            }
        return try parse(bytes, source, nil, nowSeconds: nowSeconds, warnings: &warnings)
    }

    private static func parse(
        _ bytes: [UInt8], _ source: Source, _ mark: Mark?, nowSeconds: UInt64,
        warnings: inout [String]
    ) throws(BroadsideError) -> ExternalProviderToken {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
        let token = Array(bytes[bytes.textStart...].drop { blanks.contains($0) }.reversed())
        let text = Array(token.drop { blanks.contains($0) }.reversed())
        if let problem = Self.otherKind(text) { throw source.error(problem) }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw source.error(
                "not a provider token: a provider token (JWT) has three parts with "
                    + "dots between them")
        }
        guard let parsed = try? ProviderTokenClaims.parse(text) else {
            throw source.error(
                "not a provider token for APNs: it needs alg ES256, a kid and "
                    + "an iss of 10 characters each, and iat in seconds, all in base64url")
        }
        if parsed.hasTextualIssueTime {
            warnings.append(
                "\(source.subject): iat is a string, which APNs accepts, but RFC "
                    + "7519 requires a number")
        }
        let issuedAt = parsed.claims.issuedAtUnixSeconds
        if parsed.claims.isExpired(at: nowSeconds) {
            warnings.append(
                "\(source.subject) is \(ageText(nowSeconds - issuedAt)) old, and "
                    + "APNs accepts a token for an hour only: make a new one")
        } else if issuedAt > nowSeconds + ProviderTokenAge.expirySeconds {
            warnings.append(
                "\(source.subject) is dated \(ageText(issuedAt - nowSeconds)) in "
                    + "the future: check the clocks of this machine and of the machine "
                    + "that made the token")
        }
        return ExternalProviderToken(
            source: source, mark: mark, claims: parsed.claims,
            authorization: ProviderTokenClaims.authorization(text))
    }

    /// Whether the token was made before another.
    func isOlder(than other: ExternalProviderToken) -> Bool {
        claims.issuedAtUnixSeconds < other.claims.issuedAtUnixSeconds
    }

    /// Checks that this token belongs to the same team as the previous token. APNs requires "One
    /// connection, one team", and the topic belongs to that team.
    func checkTeam(of other: ExternalProviderToken) throws(BroadsideError) {
        guard claims.teamID == other.claims.teamID else {
            let fault =
                "a token of team \(claims.teamID), but the previous token was of team "
                + "\(other.claims.teamID): sign the token with a key of that team"
            switch source {
            case .file(let path): throw .usage(source.option, "\(path) now has \(fault)")
            case .command: throw .usage(source.option, "printed \(fault)")
            }
        }
    }
}

extension ExternalProviderToken {
    /// Description of a text that is easily mistaken for a provider token, such as a key; nil for
    /// other texts.
    private static func otherKind(_ text: [UInt8]) -> String? {
        let words = String(decoding: text.prefix(64), as: UTF8.self)
        if words.contains("PRIVATE KEY-----") {
            return
                "not a provider token but a key, which signs provider tokens: "
                + "name it with --auth-key, --key-id and --team-id"
        }
        if UTF16Text.problem(text.rawSpan) != nil {
            return "not a provider token but UTF-16 text: write the token as UTF-8"
        }
        let lowercased = words.lowercased()
        for (beginning, name) in [
            ("authorization:", "'Authorization: Bearer'"), ("bearer ", "'bearer'"),
            ("\"", "the quotes"), ("'", "the quotes"),
        ] where lowercased.hasPrefix(beginning) {
            return "not a provider token: remove \(name) and write the token alone"
        }
        return nil
    }
}

/// Checks once per second whether the file has a new token or the command is due, and passes the
/// result to the run.
///
/// A command is due when its token will soon be too old for APNs, or when APNs has reported the
/// token as expired. It never runs more often than Apple's rules allow.
package struct ExternalProviderTokenWatch {
    /// Result of reading a changed file or running the command.
    package struct Reading: Sendable {
        /// State of the file; nil for a command.
        package let mark: ExternalProviderToken.Mark?
        /// The token; nil if it can't be read. In that case, the last warning has the cause.
        package var token: ExternalProviderToken?
        package var warnings: [String] = []
        /// Whether the file does not exist.
        package var isMissing = false
    }

    /// Number of checks after which a missing file is reported. A program that replaces the file
    /// may remove it for a moment.
    static let missingLimit = 5

    /// The command is run again when its token is this old, in seconds. This age leaves five
    /// minutes for retries.
    static let renewalAge = ProviderTokenAge.usableSeconds - ProviderTokenAge.changeSeconds
    /// Number of times that the command is run after APNs reported the token as expired. If the
    /// command prints no new token, the campaign's run ends.
    static let expiredTriesLimit = 3

    private(set) var token: ExternalProviderToken
    private(set) var lastMark: ExternalProviderToken.Mark?
    private var nextCheck: UInt64
    /// Number of times that the command was run since APNs reported the token as expired.
    private var expiredTries = 0
    /// Whether the last new token was reported as not used yet.
    private var didWarnAboutDelay = false
    /// Number of consecutive checks that did not find the file.
    private var missingChecks = 0

    /// Creates the watch for a credential; nil if the credential does not come from another
    /// program.
    init?(_ credential: Credential, now: Now) {
        guard case .suppliedToken(let token) = credential else { return nil }
        self.token = token
        lastMark = token.mark
        nextCheck = now.nanoseconds + second
    }

    /// Whether the token comes from a command.
    var isFromCommand: Bool {
        if case .command = token.source { return true }
        return false
    }

    /// Whether it is time to check the file or run the command.
    ///
    /// - Parameter isStale: Whether APNs reported the token as expired, so that sending waits for a
    ///   new one.
    func isDue(_ now: Now, isStale: Bool) -> Bool {
        guard now.nanoseconds >= nextCheck else { return false }
        return !isFromCommand || isStale
            || now.wallMilliseconds / 1000 >= token.claims.issuedAtUnixSeconds + Self.renewalAge
    }

    /// Schedules the next check: in a second for a file, later for a command.
    mutating func wait(_ now: Now, isStale: Bool) {
        nextCheck = now.nanoseconds + (isFromCommand ? isStale ? 5 : 60 : 1) * second
    }

    /// Applies the result of a check. While a file is being replaced, it may be missing or
    /// incomplete for a moment; the token in use then remains in use.
    ///
    /// - Parameters:
    ///   - reading: Result of the check.
    ///   - now: Current time.
    ///   - coordinator: Coordinator of the run that uses the token.
    mutating func take(_ reading: Reading, _ now: Now, coordinator: RunCoordinator) {
        guard !reading.isMissing else { return noteMissing() }
        missingChecks = 0
        lastMark = reading.mark
        if let found = reading.token {
            if found.authorization != token.authorization {
                offer(found, to: coordinator, now)
                expiredTries = 0
            }
            token = found
        }
        for warning in reading.warnings { standardErrorLine("broadside: warning: \(warning)") }
        guard isFromCommand, coordinator.isTokenMissing else { return }
        expiredTries += 1
        assert(expiredTries <= Self.expiredTriesLimit, "a run that was stopped asks no more")
        if expiredTries == Self.expiredTriesLimit {
            coordinator.stop(.expiredToken(isSupplied: true))
        }
    }

    /// Passes a new token to the run. Reports a token of another key, and the first of consecutive
    /// tokens that are not used yet.
    mutating func offer(
        _ found: ExternalProviderToken, to coordinator: RunCoordinator, _ now: Now
    ) {
        let usedFrom = coordinator.offer(
            authorization: found.authorization, issuedAt: found.claims.issuedAtUnixSeconds,
            keyID: found.claims.keyID, now)
        defer { didWarnAboutDelay = usedFrom != nil }
        guard let usedFrom else {
            guard found.claims.keyID != token.claims.keyID else { return }
            standardErrorLine(
                "broadside: \(found.source.subject) is of another key, \(found.claims.keyID): "
                    + "connections are being replaced, because APNs ties each of them to one key")
            return
        }
        guard !didWarnAboutDelay else { return }
        standardErrorLine(
            "broadside: warning: \(found.source.subject): the new token is not used before "
                + "\(timeText(usedFrom * 1000)), because APNs responded TooManyProviderTokenUpdates: "
                + "replace the token at most every \(ProviderTokenAge.renewableSeconds / 60) minutes"
        )
    }

    private mutating func noteMissing() {
        guard missingChecks < Self.missingLimit else { return }
        missingChecks += 1
        guard missingChecks == Self.missingLimit, case .file(let path) = token.source else {
            return
        }
        standardErrorLine(
            "broadside: warning: --auth-token-file \(path) has disappeared: put it back before its token "
                + "expires; the previous token stays in use")
    }
}

extension ExternalProviderTokenWatch.Reading? {
    /// Reads the file if it changed, or runs the command. May wait for a disk or for the command. A
    /// pipe is read only at the start of the run.
    ///
    /// - Parameters:
    ///   - token: Token in use.
    ///   - lastMark: State of the file before the last read.
    ///   - shell: Runs a command.
    /// - Returns: nil if the file is unchanged.
    package static func read(
        _ token: ExternalProviderToken, since lastMark: ExternalProviderToken.Mark?,
        by shell: ShellCommand
    ) -> Self {
        let nowSeconds = Clock.now().wallMilliseconds / 1000
        var reading: ExternalProviderTokenWatch.Reading
        do throws(BroadsideError) {
            let found: ExternalProviderToken
            switch token.source {
            case .file(let path):
                guard let mark = ExternalProviderToken.Mark(path: path) else {
                    return .init(mark: lastMark, isMissing: true)
                }
                guard mark != lastMark else { return nil }
                reading = ExternalProviderTokenWatch.Reading(mark: mark)
                guard !isPipe(path) else {
                    throw .usage(
                        token.source.option, "\(path) is a pipe, which is read at the start only")
                }
                found = try ExternalProviderToken.read(
                    path, nowSeconds: nowSeconds, warnings: &reading.warnings)
            case .command(let command):
                reading = ExternalProviderTokenWatch.Reading(mark: nil)
                found = try ExternalProviderToken.run(
                    command, by: shell, heedsSignals: false, nowSeconds: nowSeconds,
                    warnings: &reading.warnings)
            }
            try found.checkTeam(of: token)
            if found.isOlder(than: token), found.claims.isExpired(at: nowSeconds) {
                reading.warnings.append(
                    "--\(token.source.option) has an older token than before; the previous token stays "
                        + "in use")
            } else {
                reading.token = found
            }
        } catch {
            reading.warnings.append("\(error.message); the previous token stays in use")
        }
        return reading
    }
}

extension ProviderTokenClaims {
    /// Whether APNs no longer accepts the token because of its age.
    fileprivate func isExpired(at nowSeconds: UInt64) -> Bool {
        issuedAtUnixSeconds + ProviderTokenAge.expirySeconds < nowSeconds
    }
}

/// Formats an age: in days if it is at least two days, otherwise in minutes.
private func ageText(_ seconds: UInt64) -> String {
    let minutes = seconds / 60
    return minutes < 2 * 24 * 60
        ? "\(grouped(minutes)) minutes" : "\(grouped(minutes / (24 * 60))) days"
}
