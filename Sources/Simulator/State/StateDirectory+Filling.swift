internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Glibc

extension StateDirectory {
    /// Name of the mark in a directory whose files are not complete.
    static let markName = ".unfinished"

    /// Creates the files. If the directory has other files, no file is created.
    ///
    /// While this runs, the directory has a mark with the names of the files. If a kill ends the
    /// start, the next start removes these files.
    func store(_ files: [(name: String, bytes: [UInt8], isPrivate: Bool)]) throws(SimulatorError) {
        try removeUnfinished()
        try refuseOtherFiles()
        guard let text = try? JSONCoding.encode(config, .pretty) else {
            throw SimulatorError("--state \(path): the configuration can't be written", exitCode: 1)
        }
        let files = files + [("config.json", Array(text) + [0x0a], false)]
        let mark = try lockMark(O_WRONLY | O_CREAT | O_EXCL)
        defer {
            SystemCall.unlink(file(Self.markName))
            close(mark)
        }
        try SimulatorError.converted { () throws(BroadsideError) in
            try writeAll(
                Array(files.map(\.name).joined(separator: "\n").utf8), to: mark, name: path)
        }
        guard SystemCall.mkdir(file("other"), 0o700) == 0 else {
            if errno == EEXIST { throw PrivateFile.foreign(file("other")) }
            throw SimulatorError("--state \(file("other")): \(describe(errno: errno))", exitCode: 2)
        }
        var created: [String] = []
        do throws(SimulatorError) {
            for entry in files {
                let path = file(entry.name)
                try PrivateFile.create(path, entry.bytes, mode: entry.isPrivate ? 0o600 : 0o644)
                created.append(path)
            }
        } catch {
            // If the files stayed, the next start would mistake them for files of another program.
            for path in created { SystemCall.unlink(path) }
            SystemCall.rmdir(file("other"))
            throw error
        }
    }

    /// Refuses to fill a directory that is in use for something else, such as /etc. Hidden files
    /// are ignored, and so is `lost+found`, which a new file system contains.
    private func refuseOtherFiles() throws(SimulatorError) {
        guard let names = SystemCall.names(inDirectory: path) else {
            throw SimulatorError(
                .file(option: "state", path, errno: errno, "name a readable directory"))
        }
        let others = names.filter { !$0.hasPrefix(".") && $0 != "lost+found" }
        if let other = others.min() {
            throw SimulatorError(
                "--state \(path) has files that this simulator did not make, such as "
                    + "\(file(other)): name a new or empty directory", exitCode: 2)
        }
    }

    /// Whether the files have to be created, because this is the first start or because no start
    /// has created all of them.
    static func isUnfinished(_ path: String) throws(SimulatorError) -> Bool {
        if try PrivateFile.exists("\(path)/\(markName)") { return true }
        return try !PrivateFile.exists("\(path)/config.json")
    }

    /// Removes the files of a start that was killed.
    private func removeUnfinished() throws(SimulatorError) {
        guard try PrivateFile.exists(file(Self.markName)) else { return }
        let mark = try lockMark(O_RDONLY)
        defer { close(mark) }
        let names = try PrivateFile.read(file(Self.markName), option: "state")
        for name in names.split(separator: UInt8(ascii: "\n")) {
            SystemCall.unlink(file(String(decoding: name, as: UTF8.self)))
        }
        SystemCall.rmdir(file("other"))
        SystemCall.unlink(file(Self.markName))
    }

    /// Opens the mark, and locks it until its descriptor is closed.
    private func lockMark(_ flags: Int32) throws(SimulatorError) -> Int32 {
        let mark = file(Self.markName)
        let descriptor = SystemCall.open(mark, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw SimulatorError(
                .file(option: "state", mark, errno: errno, "name a writable directory"))
        }
        // Not all file systems have locks. A mark without a name was removed by the start that held
        // the lock.
        let isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
        guard isLocked, SystemCall.status(of: descriptor)?.st_nlink ?? 0 > 0 else {
            close(descriptor)
            throw SimulatorError(
                "--state \(path): another simulator creates the files of this directory: start again "
                    + "once it listens", exitCode: 2)
        }
        return descriptor
    }
}
