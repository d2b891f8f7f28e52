internal import Glibc
internal import Synchronization

/// Secrets that come in variables of the environment. Each is taken once: it is overwritten where it was, and
/// no child of this process is given it.
package enum EnvironmentSecret {
    /// The longest name of a variable that is taken for one: a key that was put there by mistake is longer.
    package static let nameCountMax = 48

    private static let taken = Mutex<Set<String>>([])

    /// Whether a text is a variable's name (POSIX, 8.1), and no secret.
    package static func isName(_ text: String) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, bytes.count <= nameCountMax else { return false }
        return !(0x30...0x39).contains(first)
            && bytes.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0)
                    || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_")
            }
    }

    /// The value of a variable, which is empty from then on.
    ///
    /// - Returns: nil if there is none, or it is empty, or was taken before. Who gets it overwrites it.
    package static func take(_ name: String) -> [UInt8]? {
        precondition(isName(name), "checked by the caller")
        taken.withLock { _ = $0.insert(name) }
        // SAFETY: the value ends with a zero and stays where it is; this process reads this variable
        // nowhere else, and its bytes up to the zero are its own.
        return unsafe getenv(name).flatMap { value -> [UInt8]? in
            let room = unsafe UnsafeMutableRawBufferPointer(start: value, count: strlen(value))
            guard room.count > 0 else { return nil }
            let bytes = unsafe Array(room)
            unsafe explicit_bzero(value, room.count)
            return bytes
        }
    }

    /// Settings of an environment, `NAME=value`, without those that were taken.
    static func withoutThem(_ settings: [String]) -> [String] {
        let names = taken.withLock { $0 }
        return settings.filter { setting in
            !names.contains { setting.starts(withBytes: "\($0)=") }
        }
    }
}
