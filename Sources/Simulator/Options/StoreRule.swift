/// The limit on notifications stored for a device that is offline.
public enum StoreRule: String, Sendable, CaseIterable {
    /// The newest notification of each app. Apple: "APNs stores only one notification per bundle
    /// ID."
    case app
    /// The newest notification of each app and collapse identifier.
    case collapseIdentifier = "collapse-id"
}
