import Glibc

/// The seed that is running, for the handler below.
nonisolated(unsafe) var runningSeed: UInt64 = 0

/// Ends the command.
func exitWith(_ status: Int32) -> Never {
    exit(status)
}

/// Limits the memory that glibc keeps. A simulation's large blocks are returned to the system when
/// it ends. By default, glibc would keep them in fragments, and a thousand simulations would take
/// more than a gigabyte.
func giveMemoryBack() {
    // Swift's Glibc module does not include <malloc.h>.
    typealias Mallopt = @convention(c) (_ parameter: Int32, _ value: Int32) -> Int32
    let mmapThreshold: Int32 = -3
    guard let mallopt = dlsym(nil, "mallopt") else { return }
    _ = unsafeBitCast(mallopt, to: Mallopt.self)(mmapThreshold, 1 << 18)
}

/// If the program traps, prints the number of the running seed.
func nameSeedsThatTrap() {
    for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT] {
        signal(number) { number in
            var digits: [UInt8] = []
            var rest = runningSeed
            repeat {
                digits.insert(UInt8(48 + rest % 10), at: 0)
                rest /= 10
            } while rest > 0
            let line = Array("seed ".utf8) + digits + Array(": trapped\n".utf8)
            _ = write(1, line, line.count)
            signal(number, SIG_DFL)
            raise(number)
        }
    }
}
