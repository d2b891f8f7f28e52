import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

/// What an error number means for a file that the user named.
@Suite struct FileFailureTests {
    @Test(arguments: [
        ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EEXIST, ENOTEMPTY, EXDEV,
        EBADF, EINVAL, ENXIO, ENODEV, ESPIPE, EOVERFLOW, EILSEQ, EADDRINUSE, ECONNREFUSED,
        EADDRNOTAVAIL, EAFNOSUPPORT, EPROTONOSUPPORT,
    ])
    func `A wrong path in a request is exit 2 with advice`(number: Int32) {
        let error = BroadsideError.file(
            option: "tokens", "list.txt", errno: number, "name a readable file")
        #expect(error.exitCode == 2 && error.option == "tokens")
        #expect(
            error.message == "--tokens list.txt: \(describe(errno: number)): name a readable file")
    }

    @Test(arguments: [
        EIO, ESTALE, EMFILE, ENFILE, ENOSPC, EDQUOT, EFBIG, ETIMEDOUT, EROFS, ENOMEM, ENOLCK,
        EHOSTDOWN, EREMOTEIO, ENOTCONN, 200,
    ])
    func `A failing machine is exit 5 with other advice`(number: Int32) {
        let error = BroadsideError.file(
            InputName("the list"), errno: number, "name a readable file")
        #expect(error.exitCode == 5)
        #expect(error.message.hasPrefix("the list: \(describe(errno: number)): "))
        #expect(!error.message.contains("name a readable file"))
    }

    @Test(arguments: [
        (EMFILE, "ulimit -n"), (ENFILE, "this machine has too many open files"),
        (ENOSPC, "free some space on"), (EDQUOT, "free some space on"), (EROFS, "read-only"),
        (ENOMEM, "too little memory"), (EAGAIN, "too little memory"), (ESTALE, "mounted again"),
        (EFBIG, "ulimit -f"),
        (EIO, "its disk or file system failed"),
    ])
    func `The advice follows what the machine lacks`(number: Int32, step: String) {
        let advice = FileFailure.message(errno: number, "name a readable file")
        #expect(advice.hasPrefix("\(describe(errno: number)): ") && advice.contains(step))
    }

    @Test(arguments: [(ENOSPC, "free some space on"), (EISDIR, "name another file")])
    func `An output that can't be written is exit 5 with advice`(number: Int32, step: String) {
        let error = BroadsideError.output("list.txt", errno: number)
        #expect(error.exitCode == 5)
        #expect(error.message.hasPrefix("list.txt: \(describe(errno: number)): \(step)"))
    }

    @Test(arguments: [
        (ENOENT, "another program removed or changed the ledger"),
        (ELOOP, "another program removed or changed the ledger"),
        (EACCES, "the ledger must belong to this user"), (ENOSPC, "free some space on"),
        (EINVAL, "name a ledger on another file system"),
        (EPERM, "name a ledger on another file system"),
    ])
    func `The advice for a directory in use tells changes, permissions and file systems apart`(
        number: Int32, step: String
    ) {
        let advice = FileFailure.message(errno: number, inUsed: "ledger")
        #expect(advice.hasPrefix("\(describe(errno: number)): ") && advice.contains(step))
    }

    @Test func `A file that changed is to be restored only if something depends on it`() {
        let changed = BroadsideError.changed(
            InputName("list.txt", option: "tokens"), "it is longer")
        #expect(changed.message.hasSuffix("(it is longer): restore it"))
        let repeatable = changed.ofRepeatableCommand
        #expect(
            repeatable.message
                == "--tokens list.txt has changed while it was read (it is longer): run the command "
                + "again when no program writes to it")
        #expect(repeatable.exitCode == 5 && repeatable.isChange && repeatable.option == "tokens")
        let other = BroadsideError("restore it", exitCode: 5)
        #expect(other.ofRepeatableCommand.message == other.message)
    }

    @Test func `A file is there, missing or an error`() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("", to: "file")
        #expect(try fileExists(file) && !isDirectoryPath(file) && fileCanBeSeen(file))
        #expect(try isDirectoryPath(directory.path))
        let long = "\(directory.path)/\(String(repeating: "x", count: 300))"
        for path in ["\(file)-not", "\(file)/not", long] {
            #expect(try !fileExists(path) && !isDirectoryPath(path) && !fileCanBeSeen(path))
        }
        try FileManager.default.createSymbolicLink(
            atPath: "\(directory.path)/link", withDestinationPath: "link")
        #expect(try fileExists("\(directory.path)/link"))
        #expect(try !isDirectoryPath("\(directory.path)/link"))
    }
}

/// The type of the file system of an open file, and what to do where it locks none.
@Suite struct FileSystemTypeTests {
    private let mounts = [
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro",
        "36 22 0:31 / /scratch rw,relatime shared:5 master:1 - lustre mgs@tcp:/scratch rw",
        "3 22 0:40 / /home/a\\040b rw - nfs4 server:/home rw,vers=4.2",
    ]

    @Test(arguments: [("22", "ext4"), ("36", "lustre"), ("3", "nfs4"), ("6", nil), ("", nil)])
    func `The mount entry of a file has its file system type`(identifier: String, type: String?) {
        let file = ["pos:\t0", "flags:\t02100000", "mnt_id:\t\(identifier)", "ino:\t15"]
        #expect(fileSystemType(fileInformation: file, mounts: mounts) == type)
    }

    @Test func `The file system type of a real file is found`() throws {
        let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(fileSystemType(of: descriptor) == "proc")
        #expect(fileSystemType(of: -1) == nil)
    }

    @Test(arguments: [
        ("lustre", "mount it with -o flock"), ("nfs", "lockd"), ("nfs4", "NFS server"),
        ("cifs", "nobrl"), ("fuse.sshfs", "in its options"), ("beegfs", "enable flock there"),
    ])
    func `The advice follows the type of the file system`(type: String, step: String) throws {
        for number in [ENOSYS, ENOLCK, EOPNOTSUPP] {
            let advice = try #require(FileLocking.advice(errno: number, fileSystem: type))
            #expect(advice.contains("its file system (\(type)) does not lock files"), "\(advice)")
            #expect(advice.contains(step), "\(advice)")
        }
        #expect(FileLocking.advice(errno: EIO, fileSystem: type) == nil)
        let unknown = try #require(FileLocking.advice(errno: ENOSYS, fileSystem: nil))
        #expect(unknown.hasPrefix("its file system does not lock files"))
    }
}
