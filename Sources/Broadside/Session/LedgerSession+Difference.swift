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
