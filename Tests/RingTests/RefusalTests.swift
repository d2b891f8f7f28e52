import Glibc
import Synchronization
import Testing

@testable import BroadsideRing

/// A thread of its own, for what must not run on the test runner's threads.
final class PosixThread: @unchecked Sendable {
    private var thread = pthread_t()

    init(_ body: @escaping @Sendable () -> Void) {
        final class Box {
            let body: () -> Void; init(_ body: @escaping () -> Void) { self.body = body }
        }
        let box = Unmanaged.passRetained(Box(body))
        pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
    }

    func join() { pthread_join(thread, nil) }
}

@Suite("Where io_uring is refused") struct RefusalTests {
    /// A seccomp filter on one thread lets a system call fail, as a container would: by default
    /// `io_uring_setup` (425).
    private func error(
        whenSetUpFailsWith code: Int32, systemCall: UInt32 = 425
    ) throws -> RingError? {
        let result = Mutex<RingError?>(nil)
        let failed = Mutex(false)
        withExtendedLifetime(result) {
            PosixThread {
                guard Self.refuse(systemCall: systemCall, with: code) else {
                    failed.withLock { $0 = true }
                    return
                }
                do throws(RingError) {
                    var ring = try Ring(entries: 8, bufferCount: 8, bufferSize: 64)
                    try ring.submitAndWait(atLeast: 0)
                } catch {
                    result.withLock { $0 = error }
                }
            }.join()
        }
        #expect(!failed.withLock { $0 }, "the filter could not be installed")
        return result.withLock { $0 }
    }

    private static func refuse(systemCall: UInt32, with code: Int32) -> Bool {
        struct Instruction {
            var code: UInt16
            var whenTrue: UInt8
            var whenFalse: UInt8
            var operand: UInt32
        }
        struct Program {
            var count: UInt16
            var instructions: UnsafePointer<Instruction>
        }
        // prctl is variadic in C, which Swift does not call; its arguments are all words.
        typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
        guard let symbol = dlsym(nil, "prctl") else { return false }
        let prctl = unsafeBitCast(symbol, to: Prctl.self)
        let filter = [
            Instruction(code: 0x20, whenTrue: 0, whenFalse: 0, operand: 0),  // load the number
            Instruction(code: 0x15, whenTrue: 0, whenFalse: 1, operand: systemCall),
            Instruction(code: 0x06, whenTrue: 0, whenFalse: 0, operand: 0x0005_0000 | UInt32(code)),
            Instruction(code: 0x06, whenTrue: 0, whenFalse: 0, operand: 0x7fff_0000),  // allow
        ]
        guard prctl(38, 1, 0, 0, 0) == 0 else { return false }  // PR_SET_NO_NEW_PRIVS
        return filter.withUnsafeBufferPointer { instructions in
            var program = Program(
                count: UInt16(instructions.count), instructions: instructions.baseAddress!)
            return withUnsafePointer(to: &program) {
                prctl(22, 2, UInt(bitPattern: $0), 0, 0) == 0  // PR_SET_SECCOMP, a filter
            }
        }
    }

    @Test func `An EPERM at set-up names the seccomp profile and the sysctl that may cause it`()
        throws
    {
        let error = try #require(try error(whenSetUpFailsWith: EPERM))
        #expect(error == RingError(.setUp, code: EPERM))
        #expect(error.description.contains("seccomp profile"))
        #expect(error.description.contains("kernel.io_uring_disabled"))
        #expect(!error.description.contains("\n"))
    }

    @Test func `An ENOSYS at set-up names gVisor`() throws {
        let error = try #require(try error(whenSetUpFailsWith: ENOSYS))
        #expect(error.code == ENOSYS)
        #expect(error.description.contains("gVisor"))
    }

    @Test(
        arguments: [
            (426, EPERM, "io_uring_enter"), (426, ENOSYS, "io_uring_enter"),
            (427, EACCES, "io_uring_register"),
        ] as [(UInt32, Int32, String)])
    func `A refusal of another call of io_uring names the seccomp profile and all three calls`(
        systemCall: UInt32, code: Int32, name: String
    ) throws {
        let error = try #require(
            try error(whenSetUpFailsWith: code, systemCall: systemCall))
        #expect(error.code == code && error.description.hasPrefix("\(name) is forbidden here"))
        for call in ["io_uring_setup", "io_uring_enter", "io_uring_register", "seccomp profile"] {
            #expect(error.description.contains(call), "\(error)")
        }
    }

    @Test func `Another error of io_uring_enter blames no seccomp profile`() {
        let other = RingError(.submit, code: EBADF)
        #expect(other.description == "io_uring_enter: Bad file descriptor")
        #expect(RingError(.eventDescriptor, code: EPERM).description.contains("allow eventfd2"))
        #expect(RingError(.eventDescriptor, code: EMFILE).description.hasPrefix("eventfd: "))
    }

    @Test(arguments: [EINVAL, ENOMEM, EMFILE, EIO])
    func `Each other set-up error is one line with the system's text`(code: Int32) {
        let text = RingError(.setUp, code: code).description
        #expect(!text.contains("\n") && !text.hasSuffix("."))
        #expect(text.contains(String(cString: strerror(code))))
    }
}
