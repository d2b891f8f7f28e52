extension Array<UInt8> {
    /// Offset at which a small file's text begins: after the byte order mark that Windows editors
    /// write before UTF-8; 0 if there is no mark.
    package var textStart: Int {
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        return starts(with: mark) ? mark.count : 0
    }
}
