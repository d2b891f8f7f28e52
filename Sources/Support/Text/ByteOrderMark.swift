extension Array<UInt8> {
    /// Offset of a small file's text: after the byte order mark with which Windows' editors begin
    /// UTF-8, else 0.
    package var textStart: Int {
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        return starts(with: mark) ? mark.count : 0
    }
}
