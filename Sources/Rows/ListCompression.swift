/// How a list's file is packed.
public enum ListCompression: String, Sendable, CaseIterable {
    /// RFC 1952: one member or several.
    case gzip
    /// RFC 8878: frames, skippable ones among them.
    case zstd

    /// What the first four bytes of a file say; nil for anything else.
    ///
    /// No list begins like this: the second byte of each mark is not text.
    public static func detect(_ bytes: [UInt8]) -> ListCompression? {
        if bytes.starts(with: [0x1f, 0x8b]) { return .gzip }
        if bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) { return .zstd }
        // A skippable frame's mark ends in any digit (RFC 8878, section 3.1.2).
        if bytes.count >= 4, bytes[0] & 0xf0 == 0x50,
            bytes[1...].starts(with: [0x2a, 0x4d, 0x18])
        {
            return .zstd
        }
        return nil
    }

    /// What a file's name says; nil for one that ends otherwise.
    public static func named(_ fileName: String) -> ListCompression? {
        let name = fileName.lowercased()
        if name.hasSuffix(".gz") { return .gzip }
        return name.hasSuffix(".zst") ? .zstd : nil
    }
}
