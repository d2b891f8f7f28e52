import BroadsideSupport
internal import Glibc

/// A reference from one file to another that stays right when both are moved or served together.
enum RelativeLink {
    /// - Parameters:
    ///   - target: An absolute path without links.
    ///   - folder: Where the page with the reference is, likewise.
    /// - Returns: Letters, digits and `-._~/%` only: fit for a quoted attribute, and no scheme.
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

    /// Percent-encoding (RFC 3986, 2.3) of all that is not unreserved.
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

    /// The first of these paths at which a regular file is, without links; nil: none.
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
