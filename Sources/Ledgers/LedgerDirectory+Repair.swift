internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

extension LedgerDirectory {
    /// Opens and locks a ledger in which anything may be damaged.
    static func openToRepair(
        _ path: String
    ) throws(BroadsideError) -> (LedgerDirectory, Manifest) {
        let directory = try openToRead(path)
        let names = [manifestName, manifestCopyName, ".\(manifestName).new"]
        var newer: BroadsideError?
        // Whatever happened to the ledger later, an earlier manifest is correct for its own time.
        for name in names where try fileExists("\(path)/\(name)") {
            guard let bytes = try? directory.readSmallFile(name, limit: manifestLimit) else {
                continue
            }
            var manifest: Manifest
            do {
                manifest = try Manifest(decoding: bytes)
            } catch {
                // Damage to a byte may look like a newer version, too.
                newer = newer ?? newerVersion(error, path)
                continue
            }
            if name != manifestName { manifest.assumeSegmentsMade() }
            try directory.lock(forWriting: false)
            return (directory, manifest)
        }
        if let newer { throw newer }
        // Throws the specific error: the directory is not a ledger, or the ledger has no sound
        // manifest.
        let lost = try directory.lostManifest()
        guard try directory.hasManifest || lost != nil else {
            _ = try directory.readManifest()
            throw .usage("ledger", "\(path) is not a ledger: name a ledger")
        }
        throw BroadsideError(
            option:
                "ledger",
            "\(path): its manifest.json is "
                + "\(lost == nil ? "damaged" : "missing"), and there is no sound copy "
                + "of it, so the campaign cannot be identified: put a backup of "
                + "manifest.json there (any backup since the first start), and "
                + "repair again", exitCode: 5)
    }

    /// Whether the manifest itself can be read. If not, a copy was used to open the ledger.
    var hasSoundManifest: Bool {
        guard let bytes = try? readSmallFile(Self.manifestName, limit: Self.manifestLimit) else {
            return false
        }
        return (try? Manifest(decoding: bytes)) != nil
    }

    /// Returns all segments, with zeros in place of unreadable bytes.
    ///
    /// - Returns: The segments, and a line about each file that cannot be opened.
    func damagedSegments() throws(BroadsideError) -> ([LedgerSegment], unreadable: [String]) {
        var segments: [LedgerSegment] = []
        var unreadable: [String] = []
        for name in try names().sorted() {
            guard let (epoch, reactor) = LedgerFormat.parseSegmentName(name) else { continue }
            do throws(BroadsideError) {
                let bytes = DamagedBytes(try fileBytes(name))
                segments.append(LedgerSegment(epoch: epoch, reactor: reactor, bytes: bytes))
            } catch {
                unreadable.append("lost \(name): \(error.message)")
            }
        }
        return (segments, unreadable)
    }
}

/// File with unreadable parts. They are read as zeros, which no checksum matches.
private struct DamagedBytes: LedgerBytes {
    /// Unit in which a disk reads.
    private static let sectorByteCount = 4_096
    private let bytes: FileBytes

    init(_ bytes: FileBytes) { self.bytes = bytes }

    var byteCount: UInt64 { bytes.byteCount }

    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(LedgerError) -> Int {
        // SAFETY: the buffer is the caller's; at most a sector of it is read again or set to zeros,
        // never more than it has.
        do throws(LedgerError) {
            return try unsafe bytes.read(at: offset, into: buffer)
        } catch {
            guard error.code == .inputOutput else { throw error }
        }
        guard offset < byteCount, buffer.count > 0 else { return 0 }
        let left = UInt64(Self.sectorByteCount) - offset % UInt64(Self.sectorByteCount)
        let count = Int(min(left, UInt64(buffer.count), byteCount - offset))
        let sector = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        do throws(LedgerError) {
            return try unsafe bytes.read(at: offset, into: sector)
        } catch {
            guard error.code == .inputOutput else { throw error }
            unsafe sector.initializeMemory(as: UInt8.self, repeating: 0)
            return count
        }
    }
}
