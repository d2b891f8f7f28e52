import Foundation

/// A file that this process has open.
package enum OpenFile {
    /// Returns a copy of the descriptor with which this process has the file open. A process that
    /// is started has such a copy until its program begins.
    ///
    /// - Throws: If no descriptor has the file.
    package static func copiedDescriptor(of path: String) throws -> Int32 {
        let path = URL(filePath: path).resolvingSymlinksInPath().path
        for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/fd/\(name)")
            guard target == path, let number = Int32(name) else { continue }
            let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
            if copy >= 0 { return copy }
        }
        throw TestFailure("no descriptor has \(path)")
    }
}
