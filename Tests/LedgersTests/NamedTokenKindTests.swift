import BroadsideSupport
import Testing

@testable import BroadsideLedgers

/// The message about an option whose value is not a device token.
struct NamedTokenKindTests {
    private static let digits = String(repeating: "0123456789abcdef", count: 4)

    @Test(arguments: [
        ("ExponentPushToken[abcdefghijklmnopqrstuv]", "Expo push tokens"),
        ("0x\(digits)", "with 0x in front"),
        ("\"\(digits)\"", "in quotes"),
        ("ASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8=", "device tokens in base64"),
        ("dGhpc2lz:APA91b" + String(repeating: "Hx_9-", count: 26), "FCM registration tokens"),
        ("01234567-89ab-cdef-0123-456789abcdef", "UUIDs"),
    ])
    func `A value of another known kind is named with its kind`(text: String, kind: String) {
        let error = notDeviceToken(text, option: "to")
        #expect(error.exitCode == 2)
        #expect(error.message.contains("' is not a device token. It has the form of "))
        #expect(error.message.contains(kind), "\(error.message)")
        #expect(
            text.utf8.count < 40 || !error.message.contains(text), "a whole token is in a message")
    }

    @Test func `A value of no known kind is only refused`() {
        let message = notDeviceToken("zz", option: "to").message
        #expect(
            message.hasSuffix(
                "'zz' is not a device token: write an even number of hexadecimal digits"))
    }
}
