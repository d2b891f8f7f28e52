/// How many notifications are kept for a device that is offline.
public enum StoreRule: String, Sendable, CaseIterable {
    /// One for each app: the newest. Apple: "APNs stores only one notification per bundle ID."
    case app
    /// One for each app and collapse identifier.
    case collapseIdentifier = "collapse-id"
}
