/// The libraries of `Tests/Shims`, which stand before another one's functions in one process (LD_PRELOAD).
package enum Shim {
    /// Compiles one for this machine; returns its path.
    package static func compile(_ name: String, in directory: TemporaryDirectory) throws -> String {
        let library = "\(directory.path)/\(name).so"
        try Subprocess.run(
            "gcc",
            [
                "-O2", "-shared", "-fPIC", "-o", library,
                "\(Tool.packageRoot)/Tests/Shims/\(name).c", "-ldl",
            ], in: directory)
        return library
    }
}
