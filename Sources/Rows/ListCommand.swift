internal import BroadsideSupport

/// The shell commands that convert a file to a list, for messages.
///
/// The output file gets a new name, such as `list.fixed.csv` for `list.csv`. So no command
/// overwrites its input.
public struct ListCommand: Sendable {
    /// Path of the file; nil for standard input.
    private let file: String?
    private let compression: ListCompression?

    /// Command that writes each word of its input on a line of its own, without quotes and brackets.
    public static let onePerLine = #"tr -s "\"',;|()[]{} \t\r" '[\n*]'"#

    /// Command that removes the quotes around each line, and one of each two quotes within it.
    public static let withoutOuterQuotes = #"sed -E 's/^"(.*)"(\r?)$/\1\2/; s/""/"/g'"#

    /// Command that writes each JSON object of a line on a line of its own. Braces within strings
    /// stay as they are. (jq 1.6 and earlier versions would change large numbers.)
    public static let oneObjectPerLine =
        #"perl -pe 's/("(?:[^"\\]|\\.)*")|\}[ \t]*\{/$1||"}\n{"/ge'"#

    /// Creates commands for a list.
    ///
    /// - Parameters:
    ///   - file: Path of the list; empty or `-` for standard input.
    ///   - compression: Compression of the file.
    public init(file: String, compression: ListCompression? = nil) {
        self.file = file.isEmpty || file == "-" ? nil : file
        self.compression = compression
    }

    /// Returns the command line that passes the list through a program.
    ///
    /// - Parameters:
    ///   - filter: The program and its arguments, quoted for a shell.
    ///   - ending: File name extension of the result; nil: that of the list.
    public func filter(_ filter: String, to ending: String? = nil) -> String {
        let output = shellWord(outputName(ending))
        let decompress: String? =
            switch compression {
            case .gzip: "gzip -dc"
            case .zstd: "zstd -dc"
            case nil: nil
            }
        guard let file else {
            let programs = ["...", decompress, filter].compactMap { $0 }
            return programs.joined(separator: " | ") + " > \(output)"
        }
        let input = "< \(Self.word(file))"
        guard let decompress else { return "\(filter) \(input) > \(output)" }
        return "\(decompress) \(input) | \(filter) > \(output)"
    }

    /// Command line that extracts the files of a tar archive into a directory `lists`.
    public var extractTar: String {
        let option =
            switch compression {
            case .gzip: "-xzf"
            case .zstd: "--zstd -xf"
            case nil: "-xf"
            }
        guard let file else { return "mkdir -p lists && ... | tar \(option) - -C lists" }
        return "mkdir -p lists && tar \(option) - -C lists < \(Self.word(file))"
    }

    /// Command line that extracts the files of a zip archive into a directory `lists`; nil if unzip
    /// cannot read the file.
    public var extractZip: String? {
        // unzip treats the name as a pattern.
        guard let file, compression == nil, !file.utf8.contains(where: Array("*?[".utf8).contains)
        else { return nil }
        return "unzip -d lists \(Self.word(file.hasPrefix("-") ? "./" + file : file))"
    }

    /// Returns a path quoted for a shell. Messages escape control characters, so a path that has
    /// some is replaced by `FILE`.
    private static func word(_ file: String) -> String {
        ForeignText.escaped(file) == file ? shellWord(file) : "FILE"
    }

    /// Name of the list with `.fixed` before its extension, without a directory.
    private func outputName(_ ending: String?) -> String {
        var name = (file ?? "list").pieces(at: "/").last.map(String.init) ?? ""
        if ForeignText.escaped(name) != name { name = "list" }
        for packed in [".gz", ".zst", ".xz", ".bz2", ".lz4"]
        where name.lowercased().hasSuffix(packed) {
            name.removeLast(packed.count)
        }
        var own = "txt"
        if let (before, behind) = name.parts(atLast: "."), !before.isEmpty {
            own = String(behind)
            name = String(before)
        }
        return "\(name.isEmpty ? "list" : name).fixed.\(ending ?? own)"
    }
}
