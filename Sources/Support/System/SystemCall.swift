package import Glibc

/// System calls that want pointers, with values in their place.
///
/// What they return is what the call returns; what went wrong is in `errno`.
package enum SystemCall {
    // MARK: Names

    /// `fstatvfs(3)`: the bytes that this user may still write there; nil on failure.
    package static func freeByteCount(of descriptor: Int32) -> UInt64? {
        var information = statvfs()
        // SAFETY: `information` is a local that fstatvfs sets during the call.
        guard unsafe fstatvfs(descriptor, &information) == 0 else { return nil }
        return UInt64(information.f_bavail) * UInt64(information.f_frsize)
    }

    /// `open(2)`: a descriptor, or -1.
    package static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
        // SAFETY: the path is a C string during the call, which keeps no address.
        unsafe Glibc.open(path, flags, mode)
    }

    /// `openat(2)`: a descriptor of a name in an open directory, or -1.
    package static func open(
        _ name: String, in folder: Int32, _ flags: Int32, _ mode: mode_t = 0
    ) -> Int32 {
        // SAFETY: the name is a C string during the call, which keeps no address.
        unsafe openat(folder, name, flags, mode)
    }

    /// `unlinkat(2)`, of a file.
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

    /// `stat(2)`: what a path leads to; nil where that can't be said.
    package static func status(_ path: String) -> stat? {
        var information = stat()
        // SAFETY: the path is a C string, and `information` a local that is set, during the call.
        return unsafe stat(path, &information) == 0 ? information : nil
    }

    /// `lstat(2)`: what has this name, a link too; nil where that can't be said.
    package static func linkStatus(_ path: String) -> stat? {
        var information = stat()
        // SAFETY: the path is a C string, and `information` a local that is set, during the call.
        return unsafe lstat(path, &information) == 0 ? information : nil
    }

    /// `fstatat(2)`: what has this name in an open directory, a link too; nil where that can't be said.
    package static func linkStatus(_ name: String, in folder: Int32) -> stat? {
        var information = stat()
        // SAFETY: the name is a C string, and `information` a local that is set, during the call.
        return unsafe fstatat(folder, name, &information, AT_SYMLINK_NOFOLLOW) == 0
            ? information : nil
    }

    /// `fstat(2)`: what is open; nil where that can't be said.
    package static func status(of descriptor: Int32) -> stat? {
        var information = stat()
        // SAFETY: `information` is a local that is set during the call.
        return unsafe fstat(descriptor, &information) == 0 ? information : nil
    }

    /// The names in a directory, in no order; nil where it can't be read.
    package static func names(inDirectory path: String) -> [String]? {
        // SAFETY: the directory is open until this function ends, and is read by this thread only.
        guard let directory = unsafe opendir(path) else { return nil }
        var names: [String] = []
        // Only this tells the end of a directory from a disk that fails.
        errno = 0
        while let entry = unsafe readdir(directory) {
            // SAFETY: the name ends with a zero, and stays until the next entry is read.
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

    /// `realpath(3)`: where a path leads; nil where it leads nowhere.
    package static func realPath(_ path: String) -> String? {
        // SAFETY: realpath allocates a text that ends with a zero; it is copied, and freed when
        // this function ends.
        guard let resolved = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// `getcwd(3)`; nil where the directory is gone.
    package static var workingDirectory: String? {
        // SAFETY: getcwd allocates a text that ends with a zero; it is copied, and freed when this
        // function ends.
        guard let path = unsafe getcwd(nil, 0) else { return nil }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }

    /// A variable of the environment; nil where it is not set, or empty.
    package static func environment(_ name: String) -> String? {
        // SAFETY: the value ends with a zero, and is copied at once; variables change only before
        // threads start.
        guard let value = unsafe getenv(name) else { return nil }
        let text = unsafe String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// Raises the limit on open files as far as this process may.
    ///
    /// - Returns: the limit then.
    package static func raiseOpenFileLimit() -> UInt64 {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        // SAFETY: `limit` is a local, which one call sets and the other reads; neither keeps its
        // address.
        guard unsafe getrlimit(resource, &limit) == 0 else { return 1024 }
        let own = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        return UInt64(unsafe setrlimit(resource, &limit) == 0 ? limit.rlim_cur : own)
    }

    // MARK: Bytes

    /// `read(2)`: to the beginning of `room`.
    package static func read(_ descriptor: Int32, _ room: inout [UInt8]) -> Int {
        // SAFETY: `room` has the bytes that the kernel is told of, and any bits are bytes.
        unsafe Glibc.read(descriptor, &room, room.count)
    }

    /// `pread(2)`: to the beginning of `values`, which any bits can be.
    package static func read<Value: BitwiseCopyable>(
        _ descriptor: Int32, at offset: UInt64, _ values: inout [Value]
    ) -> Int {
        // SAFETY: the kernel sets at most the bytes that the array has. Any bits are a value:
        // callers read integers, or records that consist of them.
        unsafe values.withUnsafeMutableBytes {
            unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(offset))
        }
    }

    /// `read(2)`: the number that an event descriptor counts to.
    @discardableResult
    package static func readCounter(_ descriptor: Int32) -> Int {
        var counter: UInt64 = 0
        // SAFETY: the counter has the eight bytes that the kernel may set.
        return unsafe Glibc.read(descriptor, &counter, 8)
    }

    /// `write(2)`.
    package static func write(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        // SAFETY: the kernel reads the span's bytes during the call only.
        unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }

    /// `recv(2)`: to the beginning of `room`.
    package static func receive(_ descriptor: Int32, _ room: inout [UInt8], _ flags: Int) -> Int {
        // SAFETY: `room` has the bytes that the kernel is told of, and any bits are bytes.
        unsafe recv(descriptor, &room, room.count, Int32(flags))
    }

    /// `send(2)`, without a signal where nobody reads.
    package static func send(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        // SAFETY: the kernel reads the span's bytes during the call only.
        unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }

    // MARK: Sockets

    /// `poll(2)`.
    package static func poll(_ waited: inout [pollfd], _ timeoutMilliseconds: Int32) -> Int32 {
        // SAFETY: the array has as many elements as the kernel is told, which sets them during the
        // call.
        unsafe Glibc.poll(&waited, nfds_t(waited.count), timeoutMilliseconds)
    }

    /// `poll(2)`, of one descriptor: whether it is ready, or -1.
    package static func poll(_ descriptor: Int32, _ events: Int32, _ timeoutMilliseconds: Int32)
        -> Int32
    {
        var waited = [pollfd(fd: descriptor, events: Int16(events), revents: 0)]
        return poll(&waited, timeoutMilliseconds)
    }

    /// `setsockopt(2)`, of an option at the level of sockets.
    @discardableResult
    package static func setOption<Value: BitwiseCopyable>(
        _ descriptor: Int32, _ option: Int32, _ value: Value
    ) -> Int32 {
        // SAFETY: the kernel reads the value's bytes, as many as it has, during the call only.
        unsafe withUnsafeBytes(of: value) {
            unsafe setsockopt(
                descriptor, SOL_SOCKET, option, $0.baseAddress, socklen_t($0.count))
        }
    }

    /// `connect(2)` or `bind(2)`, with an address of any family.
    static func withAddress<Address: BitwiseCopyable>(
        _ address: Address,
        _ call: (UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) -> Int32 {
        // SAFETY: every address begins like `sockaddr`; the count says how long this one is, and it
        // lives until the call has returned.
        unsafe withUnsafeBytes(of: address) {
            unsafe call($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }

    /// `connect(2)`.
    @discardableResult
    package static func connect(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        // SAFETY: the kernel copies the address, of which it is told the length, during the call.
        unsafe withAddress(address) { unsafe Glibc.connect(descriptor, $0, $1) }
    }

    /// `bind(2)`.
    package static func bind(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        // SAFETY: the kernel copies the address, of which it is told the length, during the call.
        unsafe withAddress(address) { unsafe Glibc.bind(descriptor, $0, $1) }
    }
}
