import Glibc

/// The seed that is running, for the handler below.
nonisolated(unsafe) var runningSeed: UInt64 = 0

/// Ends the command.
func exitWith(_ status: Int32) -> Never {
    exit(status)
}

/// A world's large blocks go back to the system when it ends. Left to itself glibc keeps them, in
/// pieces: a thousand worlds would take more than a gigabyte.
func giveMemoryBack() {
    mallopt(M_MMAP_THRESHOLD, 1 << 18)
}

/// A trap names its seed before the command dies of it.
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
