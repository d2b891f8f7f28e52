import Foundation
import Synchronization

/// The libraries of `Tests/Shims`, which stand before another one's functions in one process (LD_PRELOAD).
package enum Shim {
    /// What was compiled already, by name: some tests want a library a hundred times.
    private static let compiled = Mutex<[String: Data]>([:])

    /// Compiles one for this machine; returns its path.
    package static func compile(_ name: String, in directory: TemporaryDirectory) throws -> String {
        let library = "\(directory.path)/\(name).so"
        if let bytes = compiled.withLock({ $0[name] }) {
            try bytes.write(to: URL(filePath: library))
            return library
        }
        try Subprocess.run(
            "gcc",
            [
                "-O2", "-shared", "-fPIC", "-o", library,
                "\(Tool.packageRoot)/Tests/Shims/\(name).c", "-ldl",
            ], in: directory)
        let bytes = try Data(contentsOf: URL(filePath: library))
        compiled.withLock { $0[name] = bytes }
        return library
    }
}
