internal import BroadsideAPNs
internal import BroadsidePrimitives

/// Replacement for an erased device's token: eight bytes of a keyed hash, then zeros up to the
/// length of the token. The hash's key was discarded.
package enum ErasedToken {
    /// Maximum number of bytes of the hash. If the token is shorter, the hash is as short as the
    /// token.
    static let hashByteCount = 8
    /// Hash of a row that was not settled when its device was erased, so that the ledger had no
    /// data of its device.
    package static let noHash = [UInt8](repeating: 0, count: hashByteCount)
    private static let prefix = "forgotten-"

    /// Appends the placeholder that exports show: `forgotten-` and the digits of the hash. One
    /// erasure gives the same digits to all rows of a device in a ledger.
    static func appendPlaceholder(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        output += prefix.utf8
        HexDigits.append(bytes.prefix(hashByteCount), to: &output)
    }

    /// Appends the placeholder of an accepted row's device.
    ///
    /// - Parameter fingerprint: The hash that replaces the fingerprint of the row's token.
    static func appendPlaceholder(_ fingerprint: UInt64, to output: inout [UInt8]) {
        let bytes = (0..<hashByteCount).map { UInt8(truncatingIfNeeded: fingerprint >> (8 * $0)) }
        appendPlaceholder(bytes[...], to: &output)
    }

    /// Whether an accepted row's device was erased from the ledger, while the list still has its
    /// token.
    ///
    /// - Parameters:
    ///   - fingerprint: Fingerprint in the ledger; 0 if the ledger has none.
    ///   - digits: Lower-case digits of the row's token in the list.
    @inline(__always)
    static func isErased(_ fingerprint: UInt64, _ digits: RawSpan) -> Bool {
        fingerprint != 0 && TokenText.fingerprint(digits) != fingerprint
    }
}
