internal import BroadsideAPNs
internal import BroadsideHygiene
internal import BroadsideRows
internal import BroadsideSupport

extension ExclusionScan {
    /// Minimum number of tokens in the suppression list for two findings: that no token has a length
    /// of the campaign's tokens, and that none of them is in the campaign's list. The second finding
    /// also requires that the campaign's list has at least as many tokens.
    private static let unusualCount: UInt64 = 10

    /// Maximum number of token lengths that a warning names.
    private static let shownLengthsLimit = 4

    /// Refuses or reports unreadable suppressions before the campaign starts, because a run would
    /// not respect them.
    func check(
        _ counts: ListSurvey.Counts, of list: TokenList
    ) throws(BroadsideError) {
        if isBegun {
            try list.warnOfDamage(counts.overwritten)
        } else {
            try list.refuseDamage(
                counts.overwritten, so: "devices that opted out would get the push")
        }
        if let line = counts.firstMalformedRowLine {
            throw .request(
                list.name,
                ": the row on line \(line) is malformed (text after a closing "
                    + "quote, more fields than the header, or more than "
                    + "\(RowChunk.rowByteCountMax >> 20) MiB), so its opt-outs would "
                    + "be lost: correct it")
        }
        if let refusal = list.refusal(of: counts.headers, isBegun: isBegun) { throw refusal }
        list.warn(of: counts.lengths)
        guard counts.rows > 0 else {
            return standardErrorLine(
                "broadside: warning: \(list.name) contains no rows, so no row is suppressed")
        }
        guard let bad = counts.firstBadRows.first else { return }
        guard counts.valid > 0 else {
            throw .request(
                list.name,
                " contains no device token (the first row, on line \(bad.line), is "
                    + "\(bad.reason.text)): name a list of tokens")
        }
        list.warn(of: counts.headers, isBegun: isBegun)
        guard counts.invalid > counts.headers.count else { return }
        let lost =
            "\(grouped(counts.invalid)) of \(grouped(counts.rows)) rows contain no device token, the "
            + "first on line \(bad.line)"
        let invalid = counts.invalid - counts.headers.count
        guard isBegun || Double(invalid) * 100 <= maxInvalid * Double(counts.rows) else {
            throw .request(
                list.name,
                ": \(lost), so these devices would get the push: correct the list, or raise "
                    + "--max-invalid, which is \(percentNumber(maxInvalid))")
        }
        standardErrorLine("broadside: warning: \(list.name): \(lost): these devices get the push")
    }

    /// Refuses a suppression list that can't suppress any row, because no token of the campaign's
    /// list has as many digits as one of its tokens. Such tokens are probably identifiers of users.
    ///
    /// - Parameters:
    ///   - optOuts: Counts of the suppression list.
    ///   - rows: Counts of the list from which rows are skipped, including other shards.
    func checkLengths(
        of optOuts: ListSurvey.Counts, in suppress: TokenList, for rows: ListSurvey.Counts,
        of list: TokenList
    ) throws(BroadsideError) {
        // A part of a table may lack a kind of token that the table has.
        guard !isBegun, !isPart, optOuts.valid >= Self.unusualCount, rows.valid > 0 else { return }
        let digits = Self.digitCounts(optOuts)
        guard digits.allSatisfy({ rows.byDigitCount[$0] == 0 }) else { return }
        throw .request(
            suppress.name,
            ": its \(grouped(optOuts.valid)) tokens are not device tokens of \(list.name). They have "
                + "\(Self.shown(digits)) digits, and the tokens of that list have "
                + "\(Self.shown(Self.digitCounts(rows))). All devices would get the push: name a "
                + "list of the device tokens that opted out")
    }

    /// Numbers of digits that tokens of a list have, in ascending order.
    private static func digitCounts(_ counts: ListSurvey.Counts) -> [Int] {
        counts.byDigitCount.indices.filter { counts.byDigitCount[$0] > 0 }
    }

    /// Formats numbers of digits for a message, such as `50, 52`.
    private static func shown(_ digits: [Int]) -> String {
        digits.prefix(shownLengthsLimit).map(String.init).joined(separator: ", ")
            + (digits.count > shownLengthsLimit ? " and others" : "")
    }

    /// Warns about suppressed tokens that are probably wrong and suppress no device, because they
    /// are not device tokens, cut off, joined, or from another column or app.
    ///
    /// - Parameters:
    ///   - optOuts: Counts of the suppression list.
    ///   - rows: Counts of the list from which rows are skipped, including other shards.
    ///   - suppressedRows: Number of rows of that list that are suppressed.
    func warn(
        of optOuts: ListSurvey.Counts, in suppress: TokenList, for rows: ListSurvey.Counts,
        of list: TokenList, suppressedRows: UInt64
    ) {
        assert(suppressedRows <= rows.valid, "only rows with a token are suppressed")
        guard rows.valid > 0 else { return }
        // `check` has warned about a length that is the sum of two others.
        let glued = optOuts.lengths.glued?.digits
        if let absent = optOuts.lengths.absent(
            from: rows.lengths, except: glued, includesRare: !isPart)
        {
            let areShort = absent.digits.allSatisfy { $0 < TokenLengths.shortestIssued }
            let guess =
                areShort
                ? "if these are not device tokens, or were cut off"
                : "if tokens were cut off or joined"
            let tokens =
                absent.rows == 1
                ? "the token on line \(absent.line) suppresses no row, because it has"
                : "\(grouped(absent.rows)) tokens, the first on line \(absent.line), suppress no "
                    + "row, because they have"
            standardErrorLine(
                "broadside: warning: \(suppress.name): \(tokens) a number of digits that no token "
                    + "of \(list.name) has (\(Self.shown(absent.digits))): \(guess), correct the "
                    + "list, because these devices get the push")
            if absent.rows == optOuts.valid { return }
        }
        // A part of a table may have none of the tokens that the table has.
        if suppressedRows == 0, !isPart, optOuts.valid >= Self.unusualCount,
            rows.valid >= optOuts.valid
        {
            standardErrorLine(
                "broadside: warning: no row is suppressed, because none of the "
                    + "\(grouped(optOuts.valid)) tokens of \(suppress.name) is in \(list.name): "
                    + "are they of the same app and environment?")
        }
    }
}
