/// A word that a shell takes as it is.
package func shellWord(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { octet in
        (0x30...0x39).contains(octet) || (0x41...0x5a).contains(octet)
            || (0x61...0x7a).contains(octet) || Array("/._-+:@%".utf8).contains(octet)
    }
    if isPlain, !text.isEmpty { return text }
    return "'" + text.pieces(at: "'").joined(separator: "'\\''") + "'"
}
