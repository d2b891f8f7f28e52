internal import BroadsideLedgers
import BroadsideSupport

/// File of `--date-file`: the night's date for several starts, such as the first start of a service
/// and its automatic restarts. The first of them writes the file.
struct NightDateFile {
    /// Maximum size of the file, bytes.
    private static let byteLimit = 256

    let date: NightDate
    /// Time of the start that wrote the file, in milliseconds.
    let writtenAtMilliseconds: UInt64

    /// Text of the file: the date, a blank and the time.
    var text: String { "\(date) \(writtenAtMilliseconds)\n" }

    init(_ date: NightDate, at milliseconds: UInt64) {
        self.date = date
        writtenAtMilliseconds = milliseconds
    }

    /// Parses the text of a file; nil if no start has written it.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[1].last == "\n", let date = NightDate(String(words[0])),
            let time = UInt64(words[1].dropLast()), time <= NightHistory.latestTime
        else { return nil }
        self.init(date, at: time)
    }

    /// Reads a file.
    ///
    /// - Returns: nil if the file does not exist, or is empty, as after a power cut.
    /// - Throws: Exit code 2 if the file can't be read, or if no start has written it.
    static func read(_ path: String) throws(BroadsideError) -> NightDateFile? {
        guard try fileExists(path) else { return nil }
        let bytes = try readFile(path, option: "date-file", limit: byteLimit)
        guard !bytes.isEmpty else { return nil }
        guard let file = NightDateFile(String(decoding: bytes, as: UTF8.self)) else {
            throw .usage(
                "date-file",
                "\(path) is not a file that a start of a night wrote: name another file, which "
                    + "need not exist")
        }
        return file
    }

    /// Writes the file durably.
    func write(to path: String) throws(BroadsideError) {
        let output = try OutputFile(path, option: "date-file")
        try output.write(Array(text.utf8))
        try output.finish()
    }

    /// The file's date, if a start belongs to it; nil if the start chooses its own date.
    ///
    /// A service manager may leave a file behind, for example if a service is stopped while it waits
    /// for its restart. Such a file must not keep the next start of a daily schedule from its night.
    func date(at now: UInt64, _ history: NightHistory) -> NightDate? {
        let first = history[date]?.firstStartedAtMilliseconds ?? writtenAtMilliseconds
        return now < first + NightHistory.dayLength ? date : nil
    }
}
