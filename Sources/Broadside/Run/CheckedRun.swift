import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
import BroadsideSupport
import BroadsideTLS

/// The inputs of a run, which were read and checked before it begins.
struct CheckedRun {
    let plan: Plan
    let list: TokenList
    let context: TLSContext
    let skips: ExclusionScan?
    /// Rows of the list that the run covers.
    let rows: RunRows
    /// Whether an earlier run began the campaign. If so, `LedgerSession` checks its invalid rows,
    /// including those that earlier runs read.
    let isBegun: Bool
    /// Whether the run covers only a byte range of the list. To find the range, the list must be
    /// read, which may take minutes. The search and the check of the rows therefore begin only
    /// after signals are handled, so that a signal can end them.
    let isPartSearched: Bool

    /// - Parameter spooling: Locked directory of the ledger; nil unless the list is standard input.
    init(_ options: SendOptions, spooling: LedgerDirectory?) throws(BroadsideError) {
        guard let tokens = options.tokens else {
            throw .usage("tokens", "is missing: add --tokens FILE, or --to TOKEN")
        }
        if case .single(let token) = tokens, canonicalToken(token) == nil {
            throw notDeviceToken(token, option: "to")
        }
        let payloads = try PayloadFiles(options)
        list = try Self.openList(
            tokens, options, wanted: Self.wantedColumns(options, payloads),
            optional: Self.optionalColumns(options, payloads), spooling: spooling)
        if case .single = tokens, list.layout.names.count > 1 {
            let names = list.layout.names.dropFirst().map { "'\(printable($0))'" }
            standardErrorLine(
                "broadside: --to has no columns: the defaults apply for "
                    + names.joined(separator: ", "))
        }
        if list.format == .lines, let column = options.rules.columns.first {
            throw .usage(
                column.option,
                "needs columns, but \(list.name) is a plain list of lines, which "
                    + "has only the token: use a list with a header")
        }
        try Self.checkDelivery(options.delivery)
        plan = try Plan(
            options, payloads: payloads, listByteCount: list.bytes.estimatedByteCount)
        let columns = try list.columnNames()
        for warning in plan.warnings + payloads.foreignPlaceholderWarnings(columns) {
            standardErrorLine("broadside: warning: \(warning)")
        }
        isBegun = try Self.isBegun(options)
        skips = try ExclusionScan(
            options, payloads: payloads.set, topic: plan.headers.topic,
            begun: options.asksEarlierLedgers ? Self.begun(options) : nil, isBegun: isBegun)
        rows = RunRows(plan, list, skips: skips)
        isPartSearched = options.shard != nil && list.isCutByBytes
        // The payload of a campaign that began earlier was checked then.
        if options.opensNoConnection || !isPartSearched && !isBegun { try rows.checkFirstPayload() }
        context = try CampaignRun.tlsContext(options, plan.credential, resumesSessions: true)
        // A preview alone has no outputs.
        if options.isDryRun || options.preview == nil { try RunOutlets.check(options) }
        guard !options.opensNoConnection else { return }
        guard options.ledger != nil else {
            throw .usage(
                "ledger", "is missing: add --ledger DIR, a directory that does not exist yet")
        }
        if !isBegun, !isPartSearched {
            try FirstRowsCheck(list, plan: plan, rows: rows.rows()).check()
        }
    }

    /// Checks the delivery options, and that the system knows time zones.
    private static func checkDelivery(_ delivery: DeliveryOptions) throws(BroadsideError) {
        try delivery.check()
        guard delivery.isUsed else { return }
        let database = ZoneDatabase()
        _ = try delivery.zone(database)
        _ = try database.rules(of: "UTC", option: "deliver-at")
    }

    /// Columns that the payloads and the rules read, without duplicates, each with the option that
    /// requires it.
    private static func wantedColumns(
        _ options: SendOptions, _ payloads: PayloadFiles
    ) -> [(name: String, location: String)] {
        var wanted = payloads.columns
        let ofRules = options.rules.columns.map { (name: $0.name, location: "--\($0.option)") }
        for column in ofRules + options.registrationColumns + options.delivery.columns
        where !wanted.contains(where: { $0.name == column.name }) {
            wanted.append(column)
        }
        return wanted
    }

    /// Columns that only payloads and headers read, and that have defaults there.
    private static func optionalColumns(
        _ options: SendOptions, _ payloads: PayloadFiles
    ) -> Set<String> {
        payloads.columnsWithDefault
            .subtracting(options.rules.columns.map(\.name))
            .subtracting(options.registrationColumns.map(\.name))
            .subtracting(options.delivery.columns.map(\.name))
    }

    /// Manifest of a campaign that continues; nil: the campaign begins.
    private static func begun(_ options: SendOptions) throws(BroadsideError) -> Manifest? {
        guard options.resumes, let ledger = options.ledger else { return nil }
        let directory = LedgerDirectory.unlocked(ledger)
        return try directory.hasManifest ? directory.readManifest() : nil
    }

    private static func isBegun(_ options: SendOptions) throws(BroadsideError) -> Bool {
        guard options.resumes, let ledger = options.ledger else { return false }
        return try LedgerDirectory.unlocked(ledger).hasManifest
    }

    private static func openList(
        _ tokens: TokenSource, _ options: SendOptions,
        wanted: [(name: String, location: String)], optional: Set<String>,
        spooling: LedgerDirectory?
    ) throws(BroadsideError) -> TokenList {
        if case .single = tokens, options.shard != nil {
            throw .usage("shard", "and --to exclude each other: remove one")
        }
        guard let spooling else {
            return try TokenList(
                tokens, format: options.format, tokenColumn: options.tokenColumn, wanted: wanted,
                optional: optional, isReadAgain: true)
        }
        let path: String
        do throws(BroadsideError) {
            path =
                if let rows = options.host?.rows {
                    try SpooledInput.spool(into: spooling, by: rows.write)
                } else {
                    try SpooledInput.spool(
                        into: spooling,
                        otherwise: { LedgerSession.adviceOnOtherInput(spooling, options) })
                }
        } catch {
            // A campaign that began earlier has counts to report.
            if error.exitCode == ExitCode.rowsRemain, try spooling.hasManifest {
                try Summary.stoppedEarly(spooling)?.write(to: options, nil)
            }
            throw error
        }
        return try TokenList(
            .file(path), format: options.format, tokenColumn: options.tokenColumn,
            wanted: wanted, isSpooled: true)
    }
}
