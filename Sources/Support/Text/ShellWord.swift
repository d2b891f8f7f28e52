/// Returns a text quoted so that a shell passes it unchanged. Messages escape invisible characters,
/// so a text with such characters is quoted as `$'...'`, in which bash, ksh and zsh read escapes.
package func shellWord(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
            || (0x61...0x7a).contains(byte) || Array("/._-+:@%".utf8).contains(byte)
    }
    if isPlain, !text.isEmpty { return text }
    guard text.unicodeScalars.contains(where: ForeignText.isInvisible) else {
        return "'" + text.pieces(at: "'").joined(separator: "'\\''") + "'"
    }
    var word = "$'"
    for scalar in text.unicodeScalars {
        if scalar == "\n" {
            word += "\\n"
        } else if scalar == "'" || scalar == "\\" {
            word += "\\\(scalar)"
        } else if ForeignText.isInvisible(scalar) {
            for byte in String(scalar).utf8 {
                let digits = String(byte, radix: 8)
                word += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
        } else {
            word.unicodeScalars.append(scalar)
        }
    }
    return word + "'"
}
