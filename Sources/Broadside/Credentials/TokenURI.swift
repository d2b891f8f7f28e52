import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// URI of a key in a PKCS#11 token (RFC 7512):
/// `pkcs11:token=apns;object=push?pin-source=/etc/apns/pin`.
struct TokenURI: Equatable, Sendable {
    static let prefix = "pkcs11:"

    private let text: String

    init(_ text: String) { self.text = text }

    /// Maximum length of a URI, in bytes.
    private static let countMax = 1_024
    /// Limit on the size of the file that contains the PIN, bytes.
    private static let pinByteLimit = 256

    /// Part of the URI that identifies the key. It lacks the attributes for opening the key, such
    /// as the PIN's file, and is safe to show.
    var key: String { String(text.parts(atFirst: "?")?.before ?? text[...]) }

    private var attributes: [(name: Substring, value: Substring)] {
        guard let query = text.parts(atFirst: "?")?.behind else { return [] }
        return query.pieces(at: "&").compactMap { piece in
            piece.parts(atFirst: "=").map { ($0.before, $0.behind) }
        }
    }

    /// Refuses a URI that contains the PIN itself, without showing the PIN.
    func check(option: String) throws(BroadsideError) {
        // OpenSSL's engine also accepts a PIN before the question mark.
        guard !text.contains("pin-value=") else {
            throw .usage(
                option,
                "contains a pin-value (it is not shown here), and other users "
                    + "can read arguments: put the PIN into a file, and write "
                    + "pin-source=FILE")
        }
        guard text.utf8.count <= Self.countMax, !SecretText.isIn(text) else {
            throw .usage(
                option, "pkcs11: needs a URI like pkcs11:token=NAME;object=NAME?pin-source=FILE")
        }
        for (name, value) in attributes where Self.decoded(value) == nil {
            throw .usage(option, "\(key): \(name) is not percent-encoded text: check the URI")
        }
    }

    /// Opens the key.
    func read(
        option: String, warnings: inout [String]
    ) throws(BroadsideError) -> SigningKey {
        try check(option: option)
        var pin: [UInt8]?
        defer { pin?.cleanse() }
        var module: [UInt8]?
        for (name, value) in attributes {
            guard let value = Self.decoded(value) else { continue }
            if name == "module-path" { module = Array(value.utf8) + [0] }
            guard name == "pin-source" else { continue }
            var path = value[...]
            for scheme in ["file://", "file:"] where path.hasPrefix(scheme) {
                path = path.dropFirst(scheme.count)
            }
            guard SystemCall.status(String(path)) != nil else {
                throw .usage(
                    option,
                    "\(key): the file of pin-source can't be read: \(describe(errno: errno)): name "
                        + "a file whose first line is the PIN")
            }
            var file = try readSecret(
                String(path), option: option, limit: Self.pinByteLimit, &warnings)
            defer { file.cleanse() }
            pin = Array(file[file.textStart...].prefix { $0 != 0x0a && $0 != 0x0d })
        }
        var uri = Array(key.utf8)
        defer { uri.cleanse() }
        // Reserves room for the PIN, because an array that grows leaves a copy of its bytes in
        // memory.
        uri.reserveCapacity(uri.count + 64 + 3 * Self.pinByteLimit)
        if !key.contains(";type=") && !key.contains(":type=") { uri += Array(";type=private".utf8) }
        if let pin { Self.append(pin, to: &uri) }
        uri.append(0)
        do {
            return try SigningKey(tokenURI: uri, module: module)
        } catch {
            throw .usage(option, "\(key): \(error.message)")
        }
    }

    private static func append(_ pin: [UInt8], to uri: inout [UInt8]) {
        uri += Array("?pin-value=".utf8)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in pin {
            uri += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }

    /// Decodes a percent-encoded value (RFC 3986, 2.1); nil if it is invalid.
    private static func decoded(_ value: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(value.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
    }
}
