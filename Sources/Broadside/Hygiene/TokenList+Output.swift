import BroadsideLists
import BroadsideSupport

extension TokenList {
    /// Permissions for files that are made from the list: the permissions of the list itself. If
    /// the list is not a file, only the owner has access, because the files contain device tokens.
    var permissions: UInt32 {
        guard let identity, identity.isRegular else { return 0o600 }
        return identity.permissions
    }
}
