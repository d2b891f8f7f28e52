import BroadsideLists
import BroadsideSupport

extension TokenList {
    /// Permissions for files made from the list: those of the list; for a list that is not a file,
    /// access for the owner only, because it contains device tokens.
    var permissions: UInt32 {
        guard let identity, identity.isRegular else { return 0o600 }
        return identity.permissions
    }
}
