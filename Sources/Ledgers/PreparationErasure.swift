import BroadsideSupport

/// Erasure from the directory of a run that ended before its campaign began. Such a run may leave
/// its list from standard input there, whole or in part. No later run reads this list.
struct PreparationErasure {
    private let directory: LedgerDirectory
    /// The files with the list.
    private let names: [String]

    /// - Throws: Exit code 7 if a run uses the directory, or has begun its campaign meanwhile.
    init(_ path: String) throws(BroadsideError) {
        directory = try LedgerDirectory.openToRead(path)
        try directory.lock()
        guard try directory.content().isPreparation else { throw directory.inUse }
        let list = LedgerDirectory.spoolName
        names = try directory.names().filter { [list, ".\(list).new"].contains($0) }
    }

    /// Whether the directory has a list.
    var isAffected: Bool { !names.isEmpty }

    /// Human-readable description of the changes that `write` would make.
    var preview: String {
        isAffected
            ? "would remove \(Self.list)" : "contains none of the devices: nothing would change"
    }

    /// Removes the list.
    ///
    /// - Returns: A human-readable description of the changes.
    /// - Throws: Exit code 5 if the list, or a part of it, remains.
    func write() throws(BroadsideError) -> String {
        guard isAffected else { return "contains none of the devices: nothing changed" }
        for name in names { try directory.eraseFile(name) }
        try directory.syncDirectory()
        return "removed \(Self.list)"
    }

    private static let list = "the list of a run that ended before its first row"
}
