import Testing

@testable import BroadsideCampaigns

/// What a message shows of a command that prints a secret.
@Suite struct SecretCommandTests {
    private static let digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    @Test func `A line of a key is like a secret, whatever its first digit is`() {
        for first in Self.digits {
            let line = "\(first)28BR/vrq25e2kPKSAZW2SsLpi/rJfCvths6SjFZVaIWFBEz6a2EVcE0"
            #expect(SecretCommand.isLikeSecret(line[...]), "\(line)")
        }
    }

    @Test(arguments: ["'", "\"", "(", "[", "<"])
    func `A line of a key is like a secret in quotes and brackets, and before a full stop`(
        mark: String
    ) {
        let line = "n28BR/vrq25e2kPKSAZW2SsLpi/rJfCvths6SjFZVaIWFBEz6a2EVcE0"
        let closing = ["(": ")", "[": "]", "<": ">"][mark] ?? mark
        let words: [String] = ["\(mark)\(line)\(closing)", "\(line):", "\(mark)\(line)\(closing)."]
        for word in words {
            #expect(SecretCommand.isLikeSecret(word[...]), "\(word)")
        }
    }

    @Test(arguments: [
        "'/usr/share/keys/Team-A/AuthKey_ABC123DEFG.p8':",
        "/usr/lib/x86_64-linux-gnu/engines-3/libPKCS11.so", "/home/push/Keys/AuthKey_ABC123DEFG.p8",
        "a-word-of-many-letters-but-without-others", "short1A/",
    ])
    func `Paths and words are shown`(word: String) {
        #expect(!SecretCommand.isLikeSecret(word[...]))
    }
}
