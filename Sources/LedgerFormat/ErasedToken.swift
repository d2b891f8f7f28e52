internal import BroadsidePrimitives

/// Replacement for an erased device's token: eight bytes of a keyed hash, whose key was discarded,
/// then zeros up to the length of the token.
enum ErasedToken {
    /// Maximum number of bytes of the hash. If the token has fewer bytes, so does the hash.
    static let hashByteCount = 8
    private static let prefix = "forgotten-"

    /// Appends the placeholder that exports show: `forgotten-` and the digits of the hash. One
    /// erasure gives all rows of a device in a ledger the same digits.
    static func appendPlaceholder(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        output += prefix.utf8
        HexDigits.append(bytes.prefix(hashByteCount), to: &output)
    }
}
