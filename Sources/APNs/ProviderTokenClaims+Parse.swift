import BroadsidePrimitives

extension ProviderTokenClaims {
    /// The parts of a compact token.
    public struct Parsed: Sendable, Equatable {
        /// The token's claims.
        public var claims: ProviderTokenClaims
        /// Byte count of the signed part: the first two parts of the token and the dot between
        /// them.
        public var signingInputCount: Int
        /// The decoded signature: 64 bytes, or a DER structure as produced by some senders.
        public var signature: [UInt8]
        /// True if `iat` is a string of digits, as written by some senders. RFC 7519 section 4.1.6
        /// requires a number, but APNs has accepted such strings for years.
        public var hasTextualIssueTime = false
    }

    /// Parses a compact token: ES256, identifiers of ten characters, `iat` in seconds. The
    /// signature is not verified.
    ///
    /// `iat` is a NumericDate, which may have a fraction (RFC 7519 section 2) and is rounded down.
    /// A string of digits is accepted as well.
    ///
    /// - Throws: `badProviderToken` with the offset of the invalid part.
    public static func parse(_ compactToken: [UInt8]) throws(APNsError) -> Parsed {
        let parts = compactToken.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw APNsError(.badProviderToken, at: 0) }
        let header = try fields(parts[0])
        let claims = try fields(parts[1])
        guard header["alg"] == .string("ES256"), case .string(let keyID) = header["kid"],
            isIdentifier(keyID)
        else { throw APNsError(.badProviderToken, at: 0) }
        guard case .string(let teamID) = claims["iss"], isIdentifier(teamID),
            let issueTime = claims["iat"], let issuedAt = unixSeconds(issueTime)
        else { throw APNsError(.badProviderToken, at: parts[1].startIndex) }
        let hasTextualIssueTime = if case .string = issueTime { true } else { false }
        guard let signature = Base64URL.decode(parts[2]), !signature.isEmpty else {
            throw APNsError(.badProviderToken, at: parts[2].startIndex)
        }
        return Parsed(
            claims: ProviderTokenClaims(
                keyID: keyID, teamID: teamID, issuedAtUnixSeconds: issuedAt),
            signingInputCount: parts[2].startIndex - 1, signature: signature,
            hasTextualIssueTime: hasTextualIssueTime)
    }

    /// Returns the whole seconds of `iat`; nil if `iat` is not a time, or is so large that it must
    /// be in milliseconds, as in Apple's own sample.
    private static func unixSeconds(_ field: Field) -> UInt64? {
        let latest = 100_000_000_000
        switch field {
        case .number(let text):
            guard let seconds = Double(text), seconds >= 0, seconds < Double(latest) else {
                return nil
            }
            return UInt64(seconds)
        case .string(let text):
            let isDigits = text.utf8.allSatisfy {
                $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")
            }
            guard isDigits, let seconds = UInt64(text), seconds < latest else { return nil }
            return seconds
        }
    }

    private enum Field: Equatable {
        case string(String)
        case number(String)
    }

    /// Returns the top-level strings and numbers in a token part, which must be a JSON object.
    private static func fields(_ part: ArraySlice<UInt8>) throws(APNsError) -> [String: Field] {
        let failure = APNsError(.badProviderToken, at: part.startIndex)
        guard let json = Base64URL.decode(part) else { throw failure }
        var fields: [String: Field] = [:]
        var tokenizer = JSONTokenizer()
        do {
            // SAFETY: bytes have no padding.
            let text = unsafe json.span.bytes
            guard try tokenizer.next(in: text)?.kind == .objectStart else { throw failure }
            while let key = try tokenizer.next(in: text) {
                guard key.kind == .key, tokenizer.depth == 1 else { continue }
                guard let value = try tokenizer.next(in: text) else { throw failure }
                let name = String(decoding: json[key.range], as: UTF8.self)
                let content = String(decoding: json[value.range], as: UTF8.self)
                // RFC 7515 section 4: a duplicate name makes the token invalid.
                if fields[name] != nil { throw failure }
                switch value.kind {
                case .string: fields[name] = .string(content)
                case .number: fields[name] = .number(content)
                default: break
                }
            }
        } catch {
            throw failure
        }
        return fields
    }
}
