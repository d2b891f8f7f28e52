/// Detection of text in UTF-16 or UTF-32, which some editors and shells write instead of UTF-8.
package enum UTF16Text {
    /// Returns a message if a file with this beginning is UTF-16 or UTF-32: the problem, and the
    /// command that converts the file. Returns nil for any other file.
    package static func problem(_ beginning: RawSpan) -> String? {
        guard beginning.byteCount >= 4 else { return nil }
        func starts(_ first: UInt8, _ second: UInt8) -> Bool {
            beginning.byte(at: 0) == first && beginning.byte(at: 1) == second
        }
        func continues(_ third: UInt8, _ fourth: UInt8) -> Bool {
            beginning.byte(at: 2) == third && beginning.byte(at: 3) == fourth
        }
        let name: String
        if starts(0xff, 0xfe) && continues(0, 0) || starts(0, 0) && continues(0xfe, 0xff) {
            name = "UTF-32"
        } else if starts(0xff, 0xfe) || starts(0xfe, 0xff) {
            name = "UTF-16"
        } else if beginning.byte(at: 1) == 0, beginning.byte(at: 3) == 0, beginning.byte(at: 0) != 0
        {
            name = "UTF-16LE"
        } else if beginning.byte(at: 0) == 0, beginning.byte(at: 2) == 0, beginning.byte(at: 1) != 0
        {
            name = "UTF-16BE"
        } else {
            return nil
        }
        return "is \(name.prefix(6)) text: save it as UTF-8, or convert it with "
            + "'iconv -f \(name) -t UTF-8 FILE > NEWFILE'"
    }
}
