internal import Glibc

/// System calls that want pointers, with values in their place.
///
/// What they return is what the call returns; what went wrong is in `errno`.
enum SystemCall {
    // MARK: Names

    /// `open(2)`: a descriptor, or -1.
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
        unsafe Glibc.open(path, flags, mode)
    }

    /// `unlink(2)`.
    @discardableResult
    static func unlink(_ path: String) -> Int32 { unsafe Glibc.unlink(path) }

    /// `rename(2)`.
    static func rename(_ path: String, _ other: String) -> Int32 {
        unsafe Glibc.rename(path, other)
    }

    /// `mkdir(2)`.
    static func mkdir(_ path: String, _ mode: mode_t) -> Int32 { unsafe Glibc.mkdir(path, mode) }

    /// `rmdir(2)`.
    @discardableResult
    static func rmdir(_ path: String) -> Int32 { unsafe Glibc.rmdir(path) }

    /// `stat(2)`: what a path leads to; nil where that can't be said.
    static func status(_ path: String) -> stat? {
        var information = stat()
        return unsafe stat(path, &information) == 0 ? information : nil
    }

    /// `lstat(2)`: what has this name, a link too; nil where that can't be said.
    static func linkStatus(_ path: String) -> stat? {
        var information = stat()
        return unsafe lstat(path, &information) == 0 ? information : nil
    }

    /// `fstat(2)`: what is open; nil where that can't be said.
    static func status(of descriptor: Int32) -> stat? {
        var information = stat()
        return unsafe fstat(descriptor, &information) == 0 ? information : nil
    }

    // MARK: Bytes

    /// `read(2)`: to the beginning of `room`.
    static func read(_ descriptor: Int32, _ room: inout [UInt8]) -> Int {
        unsafe Glibc.read(descriptor, &room, room.count)
    }

    /// `read(2)`: the number that an event descriptor counts to.
    @discardableResult
    static func readCounter(_ descriptor: Int32) -> Int {
        var counter: UInt64 = 0
        return unsafe Glibc.read(descriptor, &counter, 8)
    }

    /// `write(2)`.
    static func write(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }

    /// `recv(2)`: to the beginning of `room`.
    static func receive(_ descriptor: Int32, _ room: inout [UInt8], _ flags: Int) -> Int {
        unsafe recv(descriptor, &room, room.count, Int32(flags))
    }

    /// `send(2)`, without a signal where nobody reads.
    static func send(_ descriptor: Int32, _ bytes: RawSpan) -> Int {
        unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }

    // MARK: Sockets

    /// `poll(2)`.
    static func poll(_ waited: inout [pollfd], _ timeoutMilliseconds: Int32) -> Int32 {
        unsafe Glibc.poll(&waited, nfds_t(waited.count), timeoutMilliseconds)
    }

    /// `setsockopt(2)`, of an option at the level of sockets.
    @discardableResult
    static func setOption<Value: BitwiseCopyable>(
        _ descriptor: Int32, _ option: Int32, _ value: Value
    ) -> Int32 {
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
        unsafe withUnsafeBytes(of: address) {
            // SAFETY: every address begins like `sockaddr`; the count says how long this one is.
            unsafe call($0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }

    /// `connect(2)`.
    @discardableResult
    static func connect(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        unsafe withAddress(address) { unsafe Glibc.connect(descriptor, $0, $1) }
    }

    /// `bind(2)`.
    static func bind(_ descriptor: Int32, _ address: some BitwiseCopyable) -> Int32 {
        unsafe withAddress(address) { unsafe Glibc.bind(descriptor, $0, $1) }
    }
}
