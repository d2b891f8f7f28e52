/// The type of the file system on which an open file lies, as the kernel names it (`nfs4`, `lustre`);
/// nil where that can't be read.
package func fileSystemType(of descriptor: Int32) -> String? {
    guard let file = lines(of: "/proc/self/fdinfo/\(descriptor)"),
        let mounts = lines(of: "/proc/self/mountinfo")
    else { return nil }
    return fileSystemType(fileInformation: file, mounts: mounts)
}

/// The same, from lines of `/proc/PID/fdinfo/N` and `/proc/PID/mountinfo` (proc(5)).
package func fileSystemType(fileInformation: [String], mounts: [String]) -> String? {
    let prefix = "mnt_id:"
    guard let line = fileInformation.first(where: { $0.hasPrefix(prefix) }) else { return nil }
    let identifier = line.dropFirst(prefix.count).drop { $0 == " " || $0 == "\t" }
    for mount in mounts {
        let fields = mount.split(separator: " ")
        // A number of optional fields ends with a hyphen, behind which the type is.
        guard fields.first == identifier, let end = fields.firstIndex(of: "-"),
            end + 1 < fields.count
        else { continue }
        return String(fields[end + 1])
    }
    return nil
}

/// The lines of a small file of the kernel's.
private func lines(of path: String) -> [String]? {
    guard let bytes = try? readFile(path, shownAs: InputName(path), limit: 1 << 24) else {
        return nil
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { String($0) }
}
