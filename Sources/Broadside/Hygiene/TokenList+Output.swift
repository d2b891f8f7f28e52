import BroadsideLists
import BroadsideSupport

extension TokenList {
    /// The permissions of what is made of the list: its own; of one that is no file, as it holds device
    /// tokens, only its owner's.
    var permissions: UInt32 {
        guard let identity, identity.isRegular else { return 0o600 }
        return identity.permissions
    }
}
