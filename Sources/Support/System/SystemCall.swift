package import Glibc

/// Wrappers for system calls that take pointers. The wrappers take and return values instead.
///
/// Each wrapper returns the result of its call; after a failure, `errno` has the error.
package enum SystemCall {
    // MARK: Names

    /// `fstatvfs(3)`: the bytes that this user may still write; nil on failure.
    package static func freeByteCount(of descriptor: Int32) -> UInt64? {
        var information = statvfs()
        // SAFETY: `information` is a local variable that fstatvfs writes during the call.
        guard unsafe fstatvfs(descriptor, &information) == 0 else { return nil }
        return UInt64(information.f_bavail) * UInt64(information.f_frsize)
    }

    /// `open(2)`: a descriptor, or -1.
    package static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
        // SAFETY: the path is a C string during the call, which keeps no address.
        unsafe Glibc.open(path, flags, mode)
    }

    /// `openat(2)`: a descriptor for a name in an open directory, or -1.
    package static func open(
        _ name: String, in folder: Int32, _ flags: Int32, _ mode: mode_t = 0
    ) -> Int32 {
        // SAFETY: the name is a C string during the call, which keeps no address.
        unsafe openat(folder, name, flags, mode)
    }

    /// `unlinkat(2)` for a file.
    @discardableResult
    package static func unlink(_ name: String, in folder: Int32) -> Int32 {
        // SAFETY: the name is a C string during the call, which keeps no address.
        unsafe unlinkat(folder, name, 0)
    }

    /// `renameat(2)`, within an open directory.
    package static func rename(_ name: String, _ other: String, in folder: Int32) -> Int32 {
        // SAFETY: both names are C strings during the call, which keeps no address.
        unsafe renameat(folder, name, folder, other)
    }

    /// `unlink(2)`.
    @discardableResult
    package static func unlink(_ path: String) -> Int32 {
        // SAFETY: the path is a C string during the call, which keeps no address.
        unsafe Glibc.unlink(path)
    }

    /// `O_TMPFILE` of `open(2)`: makes a file without a name in a folder. Glibc's headers show this
    /// flag to GNU C only.
    package static var namelessFile: Int32 { 0o20_000_000 | O_DIRECTORY }

    /// Path in `/proc` that leads to an open file.
    package static func path(of descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

    /// `linkat(2)`: gives an open file a name.
    package static func link(_ descriptor: Int32, to path: String) -> Int32 {
        // SAFETY: both paths are C strings during the call, which keeps no address.
        unsafe linkat(AT_FDCWD, Self.path(of: descriptor), AT_FDCWD, path, AT_SYMLINK_FOLLOW)
    }

    /// `rename(2)`.
    package static func rename(_ path: String, _ other: String) -> Int32 {
        // SAFETY: both paths are C strings during the call, which keeps no address.
        unsafe Glibc.rename(path, other)
    }

    /// `mkdir(2)`.
    package static func mkdir(_ path: String, _ mode: mode_t) -> Int32 {
        // SAFETY: the path is a C string during the call, which keeps no address.
        unsafe Glibc.mkdir(path, mode)
    }

    /// `rmdir(2)`.
    @discardableResult
    package static func rmdir(_ path: String) -> Int32 {
        // SAFETY: the path is a C string during the call, which keeps no address.
        unsafe Glibc.rmdir(path)
    }

    /// `stat(2)`: the status of a path, following links; nil on failure.
    package static func status(_ path: String) -> stat? {
        var information = stat()
        // SAFETY: the path is a C string and `information` a local variable, written during the
        // call.
        return unsafe stat(path, &information) == 0 ? information : nil
    }

    /// `lstat(2)`: the status of a name, without following a link; nil on failure.
    package static func linkStatus(_ path: String) -> stat? {
        var information = stat()
        // SAFETY: the path is a C string and `information` a local variable, written during the
        // call.
        return unsafe lstat(path, &information) == 0 ? information : nil
    }

    /// `fstatat(2)`: the status of a name in an open directory, without following a link; nil on
    /// failure.
    package static func linkStatus(_ name: String, in folder: Int32) -> stat? {
        var information = stat()
        // SAFETY: the name is a C string and `information` a local variable, written during the
        // call.
        return unsafe fstatat(folder, name, &information, AT_SYMLINK_NOFOLLOW) == 0
            ? information : nil
    }

    /// `fstat(2)`: the status of an open file; nil on failure.
    package static func status(of descriptor: Int32) -> stat? {
        var information = stat()
        // SAFETY: `information` is a local variable, written during the call.
        return unsafe fstat(descriptor, &information) == 0 ? information : nil
    }

    /// Returns the names in a directory, unordered; nil if it cannot be read.
    package static func names(inDirectory path: String) -> [String]? {
        // SAFETY: the directory is open until this function ends and is read only by this thread.
        guard let directory = unsafe opendir(path) else { return nil }
        var names: [String] = []
        // Only `errno` distinguishes the end of a directory from a disk failure.
        errno = 0
        while let entry = unsafe readdir(directory) {
            // SAFETY: the name ends with a zero byte and stays valid until the next entry is read.
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
                unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        let code = errno
        unsafe closedir(directory)
        errno = code
        return code == 0 ? names : nil
    }

    /// `access(2)`: whether a path exists.
    static func exists(_ path: String) -> Bool {
        // SAFETY: the path ends with a zero byte and is read during the call.
        unsafe access(path, F_OK) == 0
    }

    /// `access(2)`: whether this process may create files in a folder.
    static func isWritable(folder: String) -> Bool {
        // SAFETY: the path ends with a zero byte and is read during the call.
        unsafe access(folder, W_OK | X_OK) == 0
    }

    /// The kernel's number of the calling thread; nil without `/proc`.
    static var threadNumber: Int? {
        // `PROCESS/task/NUMBER`, whose numbers have at most ten digits each.
        var text = [CChar](repeating: 0, count: 64)
        // SAFETY: the path ends with a zero byte; `text` has the byte count passed with it.
        let count = unsafe readlink("/proc/thread-self", &text, text.count)
        guard count > 0, count < text.count else { return nil }
        let digits = text[..<count].map { UInt8(bitPattern: $0) }
            .split(separator: UInt8(ascii: "/")).last
        return digits.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
    }

    /// `getrlimit(2)`: the address space that this process may use, in bytes; nil if unlimited.
    package static var addressSpaceLimit: UInt64? { limit(RLIMIT_AS) }

    /// `getrlimit(2)`: the size of this process's data, which includes the stacks of its threads,
    /// in bytes; nil if unlimited.
    static var dataLimit: UInt64? { limit(RLIMIT_DATA) }

    private static func limit(_ resource: __rlimit_resource) -> UInt64? {
        var limit = rlimit()
        // SAFETY: `limit` is a local variable that getrlimit writes during the call.
        let result = unsafe getrlimit(__rlimit_resource_t(resource.rawValue), &limit)
        return result == 0 && limit.rlim_cur != .max ? UInt64(limit.rlim_cur) : nil
    }

    /// `getgroups(2)` and `getegid(2)`: the groups of this process.
    package static var groups: [gid_t] {
        // With a size of 0, getgroups writes nothing and returns the number of groups.
        let count = getgroups(0, nil)
        var groups = [gid_t](repeating: 0, count: Int(max(count, 0)))
        // SAFETY: getgroups writes at most `count` groups, for which the array has room.
        let read = unsafe getgroups(count, &groups)
        return groups.prefix(Int(max(read, 0))) + [getegid()]
    }

    /// `realpath(3)`: the canonical path; nil if it does not exist.
    package static func realPath(_ path: String) -> String? {
        // SAFETY: realpath allocates a text that ends with a zero byte; it is copied, and freed
        // when this function ends.
        guard let resolved = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// `getcwd(3)`: the working directory; nil if it no longer exists.
    package static var workingDirectory: String? {
        // SAFETY: getcwd allocates a text that ends with a zero byte; it is copied, and freed when
        // this function ends.
        guard let path = unsafe getcwd(nil, 0) else { return nil }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }

    /// Returns an environment variable; nil if it is unset or empty.
    package static func environment(_ name: String) -> String? {
        // SAFETY: the value ends with a zero byte and is copied immediately; variables change only
        // before threads start.
        guard let value = unsafe getenv(name) else { return nil }
        let text = unsafe String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// All variables of the environment, as `NAME=value`.
    package static var environment: [String] {
        // SAFETY: `environ` is glibc's list of texts that end with zeros, with a nil at its end;
        // variables change only before threads start, and each text is copied at once.
        guard let symbol = unsafe dlsym(nil, "environ"),
            var next = unsafe symbol.assumingMemoryBound(
                to: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self
            ).pointee
        else { return [] }
        var settings: [String] = []
        while let setting = unsafe next.pointee {
            unsafe settings.append(String(cString: setting))
            unsafe next += 1
        }
        return settings
    }

    /// Returns the limit on open files. If `raised`, first raises it to the maximum permitted for
    /// this process.
    package static func openFileLimit(raised: Bool) -> UInt64 {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        // SAFETY: `limit` is a local variable that one call writes and the other reads; neither
        // keeps its address.
        guard unsafe getrlimit(resource, &limit) == 0 else { return 1024 }
        guard raised else { return UInt64(limit.rlim_cur) }
        let own = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        return UInt64(unsafe setrlimit(resource, &limit) == 0 ? limit.rlim_cur : own)
    }

    // MARK: Bytes

    /// `read(2)` into the beginning of `room`.
    package static func read(_ descriptor: Int32, _ room: inout [UInt8]) -> Int {
        // SAFETY: `room` has the byte count passed to the kernel, and any bits are valid bytes.
        unsafe Glibc.read(descriptor, &room, room.count)
    }

    /// `pread(2)` into the beginning of `values`. Any bits must form a valid `Value`.
    package static func read<Value: BitwiseCopyable>(
        _ descriptor: Int32, at offset: UInt64, _ values: inout [Value]
    ) -> Int {
        // SAFETY: the kernel writes at most the bytes of the array. Any bits are a valid value:
        // callers read integers, or records that consist of them.
        unsafe values.withUnsafeMutableBytes {
            unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(offset))
        }
    }

    /// `read(2)` of an event descriptor's counter.
    @discardableResult
    package static func readCounter(_ descriptor: Int32) -> Int {
        var counter: UInt64 = 0
        // SAFETY: the counter has the eight bytes that the kernel may write.
        return unsafe Glibc.read(descriptor, &counter, 8)
    }

    /// `write(2)`.
    package static func write(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        // SAFETY: the kernel reads the span's bytes only during the call.
        unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }

    /// `recv(2)` into the beginning of `room`.
    package static func receive(_ descriptor: Int32, _ room: inout [UInt8], _ flags: Int) -> Int {
        // SAFETY: `room` has the byte count passed to the kernel, and any bits are valid bytes.
        unsafe recv(descriptor, &room, room.count, Int32(flags))
    }

    /// `send(2)`, without a signal if the peer has closed the connection.
    package static func send(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        // SAFETY: the kernel reads the span's bytes only during the call.
        unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }

    // MARK: Sockets

    /// `poll(2)`.
    package static func poll(_ waited: inout [pollfd], _ timeoutMilliseconds: Int32) -> Int32 {
        // SAFETY: the array has the number of elements passed to the kernel, which writes them
        // during the call.
        unsafe Glibc.poll(&waited, nfds_t(waited.count), timeoutMilliseconds)
    }

    /// `poll(2)` for one descriptor: 1 if it is ready, 0 if not, or -1.
    package static func poll(_ descriptor: Int32, _ events: Int32, _ timeoutMilliseconds: Int32)
        -> Int32
    {
        var waited = [pollfd(fd: descriptor, events: Int16(events), revents: 0)]
        return poll(&waited, timeoutMilliseconds)
    }

    /// `setsockopt(2)` for an option at the socket level.
    @discardableResult
    package static func setOption<Value: BitwiseCopyable>(
        _ descriptor: Int32, _ option: Int32, _ value: Value
    ) -> Int32 {
        // SAFETY: the kernel reads exactly the value's bytes, and only during the call.
        unsafe withUnsafeBytes(of: value) {
            unsafe setsockopt(
                descriptor, SOL_SOCKET, option, $0.baseAddress, socklen_t($0.count))
        }
    }

    /// Calls `connect(2)` or `bind(2)` with an address of any family.
    static func withAddress<Address: BitwiseCopyable>(
        _ address: Address,
        _ call: (UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) -> Int32 {
        // SAFETY: every address begins like `sockaddr`; the count is the size of this one, and it
        // lives until the call has returned.
        unsafe withUnsafeBytes(of: address) {
            unsafe call($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }

    /// `connect(2)`.
    @discardableResult
    package static func connect(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        // SAFETY: the kernel copies the address, whose size is passed, during the call.
        unsafe withAddress(address) { unsafe Glibc.connect(descriptor, $0, $1) }
    }

    /// `bind(2)`.
    package static func bind(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        // SAFETY: the kernel copies the address, whose size is passed, during the call.
        unsafe withAddress(address) { unsafe Glibc.bind(descriptor, $0, $1) }
    }
}
