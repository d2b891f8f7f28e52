import BroadsideSupport
internal import Glibc

/// Relative links between files. A link stays valid if both files are moved together, or served by
/// a web server.
enum RelativeLink {
    /// - Parameters:
    ///   - target: Absolute path without symbolic links.
    ///   - folder: Directory of the page with the link, also absolute and without symbolic links.
    /// - Returns: A link with only letters, digits and `-._~/%`. It fits a quoted attribute and has
    ///   no scheme.
    static func text(to target: String, from folder: String) -> String {
        let target = target.pieces(at: "/").filter { !$0.isEmpty }
        let folder = folder.pieces(at: "/").filter { !$0.isEmpty }
        var shared = 0
        while shared < min(folder.count, target.count - 1),
            folder[shared].utf8.elementsEqual(target[shared].utf8)
        {
            shared += 1
        }
        let up = Array(repeating: "..", count: folder.count - shared)
        return (up + target[shared...].map(encoded)).joined(separator: "/")
    }

    /// Percent-encodes all bytes that are not unreserved (RFC 3986, 2.3).
    private static func encoded(_ name: Substring) -> String {
        name.utf8.reduce(into: "") { text, byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    /// Returns the first path of a regular file, with symbolic links resolved; nil if there is
    /// none.
    static func file(among paths: [String]) -> String? {
        for path in paths {
            guard let information = SystemCall.status(path),
                information.st_mode & S_IFMT == S_IFREG
            else { continue }
            return absolutePath(path)
        }
        return nil
    }
}
