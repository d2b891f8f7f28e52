internal import BroadsidePrimitives

/// Replacement of an erased device's token: eight bytes of a keyed hash whose key was thrown away,
/// then zeros, as many bytes as the token had.
enum ErasedToken {
    /// Limit on the bytes of the hash; a shorter token has fewer.
    static let hashByteCount = 8
    private static let prefix = "forgotten-"

    /// Appends the placeholder that exports show: `forgotten-` and the digits of the hash, which are
    /// the same for all rows of a device that one erasure found in a ledger.
    static func appendPlaceholder(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        output += prefix.utf8
        HexDigits.append(bytes.prefix(hashByteCount), to: &output)
    }
}
