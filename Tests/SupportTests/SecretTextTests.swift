import BroadsideSupport
import Foundation
import Testing

/// Keys and tokens that came into a text by mistake.
@Suite struct SecretTextTests {
    static let body =
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff"
    static let key = "-----BEGIN PRIVATE KEY-----\n\(body)\n-----END PRIVATE KEY-----"
    static let token =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6.eyJpc3MiOiJERUYxMjNHSElKIiwi.c2lnbmF0dXJlLWlzLWhlcmUtMTIz"

    @Test(
        arguments: [
            key, key.replacing("\n", with: "\\n"), key.replacing("\n", with: " "), body,
            "-----BEGIN PRIVATE KEY-----\(body)", "-----BEGIN PRIVATE KEY\n\(body)",
            Data(key.utf8).base64EncodedString(), token,
        ])
    func `A secret is removed, and the text around it stays`(secret: String) {
        let text = "--auth-key='\(secret)': name a file"
        let masked = SecretText.masked(text)
        #expect(SecretText.isIn(secret) && masked.hasPrefix("--auth-key='…"))
        for start in stride(from: 0, to: secret.count - 12, by: 6) {
            let part = secret.dropFirst(start).prefix(12)
            #expect(part.contains(" ") || part.contains("-") || !masked.contains(part), "\(masked)")
        }
        #expect(masked.contains("name a file") || !secret.contains("END"))
        #expect(SecretText.masked(masked) == masked)
        // An error has it neither.
        #expect(!BroadsideError(text, exitCode: 2).message.contains(Self.body))
    }

    @Test(
        arguments: [
            "this is not a private key in PEM form (-----BEGIN PRIVATE KEY-----): name the .p8 file",
            "/srv/MIGRATION/keys/AuthKey_ABC123DEFG.p8", "MIGRATION", "eyJ", "eyJhbGciOiJFUzI1NiJ9",
            "a-----BEGIN b", "", "{{name}}", "-----BEGIN CERTIFICATE-----: is damaged",
        ])
    func `Text without secrets is unchanged`(text: String) {
        #expect(SecretText.masked(text) == text && !SecretText.isIn(text))
    }

    @Test func `Only what looks like a file name is shown of a secret option's value`() throws {
        for option in ["auth-key", "passphrase-file", "proxy-auth-file", "auth-token-file"] {
            for value in [
                Self.key, Self.body, Self.token, "hunter2", "user:word", "two words", "a/b",
            ] {
                #expect(!FileValue.isShown(value, option: option), "\(value)")
                let message = FileValue.unreadable(value, option: option, errno: ENOENT).message
                #expect(!message.contains(value) && message.contains("name "), "\(message)")
                #expect(!"\(InputName(value, option: option))".contains(value))
            }
            for value in [
                "AuthKey_ABC123DEFG.p8", "keys/word.txt", "/etc/passwd", "/tmp/none", "/none",
            ] {
                #expect(FileValue.isShown(value, option: option), "\(value)")
            }
        }
        #expect(FileValue.isContent(Self.key, option: "payload"))
        #expect(!FileValue.isContent("two\nlines.json", option: "payload"))
        #expect(FileValue.isContent("two\nlines", option: "passphrase-file"))
        #expect(FileValue.isShown("payload", option: "payload"))
    }
}
