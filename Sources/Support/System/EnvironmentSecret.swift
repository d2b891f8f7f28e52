internal import Glibc
internal import Synchronization

/// Secrets in environment variables. Each can be read once: reading overwrites it in the
/// environment, and no child process receives it.
package enum EnvironmentSecret {
    /// Maximum length of a variable's name in bytes. A key that was given instead of a name by
    /// mistake is longer.
    package static let nameCountMax = 48

    private static let taken = Mutex<Set<String>>([])

    /// Returns whether a text has the form of a variable's name (POSIX, 8.1) and is not a secret.
    package static func isName(_ text: String) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, bytes.count <= nameCountMax else { return false }
        return !(0x30...0x39).contains(first)
            && bytes.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0)
                    || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_")
            }
    }

    /// Returns the value of a variable and empties the variable.
    ///
    /// - Returns: The value, which the caller must overwrite after use; nil if the variable is
    ///   unset or empty, or was read before.
    package static func take(_ name: String) -> [UInt8]? {
        precondition(isName(name), "checked by the caller")
        taken.withLock { _ = $0.insert(name) }
        // SAFETY: the value ends with a zero and does not move; this process reads this variable
        // nowhere else, and its bytes up to the zero are its own.
        return unsafe getenv(name).flatMap { value -> [UInt8]? in
            let room = unsafe UnsafeMutableRawBufferPointer(start: value, count: strlen(value))
            guard room.count > 0 else { return nil }
            let bytes = unsafe Array(room)
            unsafe explicit_bzero(value, room.count)
            return bytes
        }
    }

    /// Returns the entries of an environment, each `NAME=value`, without the variables that `take`
    /// has read.
    static func withoutThem(_ settings: [String]) -> [String] {
        let names = taken.withLock { $0 }
        return settings.filter { setting in
            !names.contains { setting.starts(withBytes: "\($0)=") }
        }
    }
}
