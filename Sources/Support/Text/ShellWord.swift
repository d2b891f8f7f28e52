/// Returns a text quoted so that a shell passes it unchanged.
package func shellWord(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
            || (0x61...0x7a).contains(byte) || Array("/._-+:@%".utf8).contains(byte)
    }
    if isPlain, !text.isEmpty { return text }
    return "'" + text.pieces(at: "'").joined(separator: "'\\''") + "'"
}
