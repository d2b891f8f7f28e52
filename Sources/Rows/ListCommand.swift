internal import BroadsideSupport

/// Shell commands that make a list of a file, for messages: how the file is read, and where the result goes.
///
/// The result has a name of its own, `list.fixed.csv` of `list.csv`, so that no command overwrites the
/// list that it reads.
public struct ListCommand: Sendable {
    /// The file's path; nil for standard input.
    private let file: String?
    private let compression: ListCompression?

    /// Writes the words of each line on lines of their own, without quotes.
    public static let onePerLine = #"tr -s "\"',;| \t\r" '[\n*]'"#

    /// Commands for a list.
    ///
    /// - Parameters:
    ///   - file: Its path; empty or `-` for standard input.
    ///   - compression: How the file is compressed.
    public init(file: String, compression: ListCompression? = nil) {
        self.file = file.isEmpty || file == "-" ? nil : file
        self.compression = compression
    }

    /// The command line that passes the list through a program.
    ///
    /// - Parameters:
    ///   - filter: The program and its arguments, as a shell takes them.
    ///   - ending: What the result's name ends with; nil: as the list's does.
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

    /// The command line that extracts the files of a tar archive into a directory `lists`.
    public var extractTar: String {
        let option =
            switch compression {
            case .gzip: "-xzf"
            case .zstd: "--zstd -xf"
            case nil: "-xf"
            }
        guard let file else { return "mkdir lists && ... | tar \(option) - -C lists" }
        return "mkdir lists && tar \(option) - -C lists < \(Self.word(file))"
    }

    /// The command line that extracts the files of a zip archive into a directory `lists`; nil for one
    /// that unzip does not read.
    public var extractZip: String? {
        // It looks for files whose names match.
        guard let file, compression == nil, !file.utf8.contains(where: Array("*?[".utf8).contains)
        else { return nil }
        return "unzip -d lists \(Self.word(file.hasPrefix("-") ? "./" + file : file))"
    }

    /// A path as a shell takes it. Messages escape control characters: a name that has some is left to
    /// the reader.
    private static func word(_ file: String) -> String {
        ForeignText.escaped(file) == file ? shellWord(file) : "FILE"
    }

    /// The list's name with `.fixed` in it, in the directory in which the command runs.
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
