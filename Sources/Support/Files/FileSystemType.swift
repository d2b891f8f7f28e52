/// Returns the kernel's name for the type of an open file's file system (`nfs4`, `lustre`); nil if
/// it cannot be determined.
package func fileSystemType(of descriptor: Int32) -> String? {
    guard let file = lines(of: "/proc/self/fdinfo/\(descriptor)"),
        let mounts = lines(of: "/proc/self/mountinfo")
    else { return nil }
    return fileSystemType(fileInformation: file, mounts: mounts)
}

/// Returns the type of a file system from lines of `/proc/PID/fdinfo/N` and `/proc/PID/mountinfo`
/// (proc(5)).
package func fileSystemType(fileInformation: [String], mounts: [String]) -> String? {
    let prefix = "mnt_id:"
    guard let line = fileInformation.first(where: { $0.hasPrefix(prefix) }) else { return nil }
    let identifier = line.dropFirst(prefix.count).drop { $0 == " " || $0 == "\t" }
    for mount in mounts {
        let fields = mount.split(separator: " ")
        // A hyphen terminates a variable number of optional fields and precedes the type.
        guard fields.first == identifier, let end = fields.firstIndex(of: "-"),
            end + 1 < fields.count
        else { continue }
        return String(fields[end + 1])
    }
    return nil
}

/// Returns the lines of a small kernel file.
private func lines(of path: String) -> [String]? {
    guard let bytes = try? readFile(path, shownAs: InputName(path), limit: 1 << 24) else {
        return nil
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { String($0) }
}
