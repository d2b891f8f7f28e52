import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport

extension LedgerSession {
    /// Describes the first difference between a ledger's campaign and that of a run; nil if it is
    /// the same campaign. If two paths lead to the same folder of earlier ledgers, that is not a
    /// difference.
    ///
    /// - Parameters:
    ///   - known: Identity with which the campaign began.
    ///   - own: Identity of the run.
    static func difference(
        _ known: CampaignIdentity, _ own: CampaignIdentity, in directory: LedgerDirectory,
        _ options: SendOptions
    ) -> String? {
        let folder = normalizedPath("\(directory.path)/..")
        func resolved(_ path: String) -> String { SystemCall.realPath(path) ?? path }
        func named(_ path: String, isOwn: Bool) -> String {
            path == EarlierRules.ownFolder || isOwn || areSamePaths(path, folder)
                ? EarlierRules.ownFolder : resolved(path)
        }
        var (known, own) = (known, own)
        own.earlier = own.earlier?.renaming(
            skipDead: { named($0, isOwn: false) }, history: resolved)
        known.earlier = known.earlier?.renaming(
            skipDead: { path in
                // Earlier versions recorded the path of a night's folder, which may have been moved
                // since.
                named(
                    path,
                    isOwn: options.skipsOwnDead && options.skipDead == nil
                        && path.parts(atLast: "/")?.behind == folder.parts(atLast: "/")?.behind)
            }, history: resolved)
        return known.firstDifference(from: own)
    }

    static func otherCampaign(
        _ directory: LedgerDirectory, _ difference: String, _ options: SendOptions
    ) -> BroadsideError {
        if options.nightFolder != nil { return otherNight(directory, difference) }
        var (owner, advice) = (
            "another campaign",
            "resume with the list and options with which that campaign began, or name another ledger"
        )
        if let date = directory.nightDate {
            owner = "the night of \(date)"
            advice = "to continue the night, run broadside night with --date \(date)"
        }
        return .usage(
            "ledger",
            "\(directory.path) belongs to \(owner) (\(difference)): \(advice). A new ledger's "
                + "campaign goes to its whole list, and "
                + reached(by: try? LedgerReader(path: directory.path), of: "this ledger's campaign")
        )
    }

    /// Advice if standard input is not the list with which a ledger's campaign began.
    static func adviceOnOtherInput(_ directory: LedgerDirectory, _ options: SendOptions) -> String {
        let ledger = try? LedgerReader(path: directory.path)
        if options.nightFolder != nil {
            return "send the present list as a separate campaign with --name NAME. That campaign "
                + "goes to its whole list, and \(reached(by: ledger))"
        }
        return "name another ledger for this list. A new ledger's campaign goes to its whole list, "
            + "and \(reached(by: ledger, of: "this ledger's campaign"))"
    }

    /// Returns the error for a night that began with a different list, payload or options.
    /// `broadside night` has no option for the ledger, so the message does not suggest another
    /// ledger.
    private static func otherNight(
        _ directory: LedgerDirectory, _ difference: String
    ) -> BroadsideError {
        let path = directory.path
        let date = path.parts(atLast: "/").map { String($0.behind) } ?? path
        let night = try? LedgerReader(path: path)
        let isFinished = night?.isFinished == true
        let rest =
            isFinished
            ? ""
            : "restore the list, payload and options with which the night began, or "
        return .request(
            "the night of \(date) \(isFinished ? "is finished, but " : "")began with different input "
                + "(\(difference)), so nothing is sent: \(rest)send the present input as a "
                + "separate campaign with --name NAME. That campaign goes to its whole list, and "
                + "\(reached(by: night)) (\(path))")
    }

    /// Returns a clause about how many devices may have got the notification of a night.
    ///
    /// - Parameter night: Ledger of the night; nil: it can't be read.
    static func reached(
        by night: LedgerReader?, of notification: String = "this night's notification"
    ) -> String {
        switch try? night?.statistics() {
        case nil: "devices may have got \(notification) already"
        case let known?:
            switch known.accepted + known.unknown + known.inDoubt {
            case 0: "no device has got \(notification) yet"
            case 1: "1 device has or may have got \(notification) already"
            case let count:
                "\(grouped(count)) devices have or may have got \(notification) already"
            }
        }
    }
}
