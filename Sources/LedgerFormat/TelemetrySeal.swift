internal import BroadsidePrimitives
internal import BroadsideSupport

/// The seal of `telemetry.json`: the object's last member is a hash of all bytes before that
/// member.
public enum TelemetrySeal {
    /// Appends the hash and the closing brace to an object without its closing brace.
    public static func sealed(_ members: ArraySlice<UInt8>) -> [UInt8] {
        let hash = MixingHash.hash(Array(members).rawSpan)
        return members + ending(hexadecimal(hash))
    }

    /// Returns the bytes that the hash covers; nil if `hash` is not the hash of these bytes.
    public static func members(of bytes: [UInt8], hash: String) -> ArraySlice<UInt8>? {
        let ending = ending(hash)
        guard bytes.count > ending.count else { return nil }
        let members = bytes.dropLast(ending.count)
        return sealed(members) == bytes ? members : nil
    }

    /// Returns the bytes that the file's own hash covers; nil if the file has no hash or a wrong
    /// one.
    public static func members(of bytes: [UInt8]) -> ArraySlice<UInt8>? {
        let count = ending(hexadecimal(0 as UInt64)).count
        guard bytes.count > count else { return nil }
        let members = bytes.dropLast(count)
        return sealed(members) == bytes ? members : nil
    }

    private static func ending(_ hash: String) -> [UInt8] {
        Array(",\"hash\":\"\(hash)\"}\n".utf8)
    }
}
