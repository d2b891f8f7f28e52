import BroadsideSupport
import Testing

/// What was probably meant where a name is unknown.
@Suite struct NearestNameTests {
    @Test(arguments: [
        ("tokn", "token"), ("TOKEN", "token"), ("device_token", "Device Token"),
        ("deviceid", "device-id"), ("aps", "aps"), ("pas", "aps"), ("form", "from"),
        ("conections", "connections"), ("mutablecontnt", "mutable-content"),
        ("rate-per-conection", "rate-per-connection"), ("muttablecontant", "mutable-content"),
        ("content-avail", "content-available"),
    ])
    func `A typing error leads to the nearest name`(wrong: String, right: String) {
        let names = [
            "token", "Device Token", "device-id", "aps", "from", "connections", "mutable-content",
            "rate", "rate-per-connection", "content-available",
        ]
        #expect(nearestName(to: wrong, among: names) == right)
    }

    @Test(arguments: [
        ("id", ["os"]), ("xyz", ["aps"]), ("abcd", ["abxy"]), ("token", ["payload", "topic"]),
        ("", ["a"]), ("token", []), ("notification", ["alert", "complication"]),
    ])
    func `A different word gets no suggestion`(wrong: String, names: [String]) {
        #expect(nearestName(to: wrong, among: names) == nil)
    }
}
