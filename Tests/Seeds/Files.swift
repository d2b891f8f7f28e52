import Glibc

/// Returns a file's text; nil if it can't be read.
func readText(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { break }
        text += buffer[..<count]
    }
    return String(decoding: text, as: UTF8.self)
}

/// Writes a file. If that fails, ends the command.
func writeText(_ text: String, _ path: String) {
    let bytes = Array(text.utf8)
    guard let file = fopen(path, "w"), fwrite(bytes, 1, bytes.count, file) == bytes.count,
        fclose(file) == 0
    else {
        print("seeds: \(path) can't be written")
        exitWith(2)
    }
}
