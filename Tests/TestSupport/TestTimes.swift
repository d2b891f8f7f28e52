import Foundation
internal import Testing

/// What the processes of each test used, for the tables of `tools/run-tests`: a line of CPU seconds, seconds, and the
/// test's name, in the file that `BROADSIDE_TEST_TIMES` names.
enum TestTimes {
    private static let descriptor: Int32 = {
        guard let path = ProcessInfo.processInfo.environment["BROADSIDE_TEST_TIMES"] else {
            return -1
        }
        return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }()

    /// - Parameters:
    ///   - usage: What a process used that ended.
    ///   - seconds: How long it ran.
    static func add(_ usage: rusage, seconds: Double) {
        guard descriptor >= 0, let test = Test.current else { return }
        func cpu(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        let used = cpu(usage.ru_utime) + cpu(usage.ru_stime)
        let line = "\(used)\t\(seconds)\t\(test.sourceLocation.fileID) \(test.name)\n"
        // A line at a time, so that several processes can write to the file.
        _ = Data(line.utf8).withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}
