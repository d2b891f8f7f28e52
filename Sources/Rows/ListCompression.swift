/// Compression of a list's file.
public enum ListCompression: String, Sendable, CaseIterable {
    /// RFC 1952: one or more members.
    case gzip
    /// RFC 8878: frames, including skippable ones.
    case zstd

    /// Detects the compression from the first four bytes of a file; nil if the file is not
    /// compressed.
    ///
    /// The first four bytes of a compressed file are never all text, so no uncompressed list begins
    /// with such bytes.
    public static func detect(_ bytes: [UInt8]) -> ListCompression? {
        if bytes.starts(with: [0x1f, 0x8b]) { return .gzip }
        if bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) { return .zstd }
        // The mark of a skippable frame has any low digit in its first byte (RFC 8878, section
        // 3.1.2).
        if bytes.count >= 4, bytes[0] & 0xf0 == 0x50,
            bytes[1...].starts(with: [0x2a, 0x4d, 0x18])
        {
            return .zstd
        }
        return nil
    }

    /// Compression by file name extension; nil for any other extension.
    public static func named(_ fileName: String) -> ListCompression? {
        let name = fileName.lowercased()
        if name.hasSuffix(".gz") { return .gzip }
        return name.hasSuffix(".zst") ? .zstd : nil
    }
}
