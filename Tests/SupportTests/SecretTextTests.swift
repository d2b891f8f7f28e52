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

    /// The first bytes of keys that `openssl` writes: EC, RSA, Ed25519 and an encrypted key.
    @Test(
        arguments: [
            "MHcCAQEEIDci", "MHQCAQEEIDci", "MIGHAgEAMBMG", "MIGTAgEAMBMG", "MIHsMFcGCSqG",
            "MIIEpAIBAAKC", "MIIEvQIBADAN", "MIICXAIBAAKB", "MC4CAQAwBQYD", "MIIFLTBXBgkq",
        ])
    func `A key in base64 is removed, also if a path begins before it`(start: String) {
        let key = start + String(repeating: "q7/", count: 20)
        #expect(SecretText.masked("/work/\(key): not there") == "/work/…: not there")
        #expect(SecretText.isIn(key) && SecretText.isIn("./\(key)"))
    }

    @Test func `Each key in a row of keys is removed, whatever dashes are around it`() {
        let text = "------\(Self.key)\(Self.key)---\(Self.key)-- \(Self.body)"
        #expect(SecretText.masked("a\(text)") == "a………-- …")
    }

    @Test func `The password of a URL is removed, and a URL without one is unchanged`() {
        for (text, masked) in [
            ("postgres://u:secret@h/db is not", "postgres://u:…@h/db is not"),
            ("curl 'https://:a:b@c@h?x' |", "curl 'https://:…@h?x' |"),
            ("a://u:1@h b://v:2@h", "a://u:…@h b://v:…@h"),
            ("a://u:$ecret@h b://v:${A}b@h", "a://u:…@h b://v:…@h"),
            ("a://u:$123456@h b://v:${9x}@h", "a://u:…@h b://v:…@h"),
            ("a://u:$@h b://v:${}@h c://w:${@h", "a://u:…@h b://v:…@h c://w:…@h"),
        ] {
            #expect(SecretText.masked(text) == masked && SecretText.masked(masked) == masked)
            #expect(BroadsideError(text, exitCode: 2).message == masked)
            // It is not a reason to take a value for the content of a file.
            #expect(!SecretText.isIn(text))
        }
        for text in [
            "https://host:8080/a@b", "write http://HOST:PORT", "https://user@host/x", "://:@h",
            "s3://bucket/a:b@c", "http://a:1 b@c", "user:word@host", "https://u:$WORD_2@h",
            "https://u:${word}@h", "https://u:$_W@h", "https://u:${_2}@h",
        ] {
            #expect(SecretText.masked(text) == text)
        }
    }

    @Test func `A text that is cut within a URL's password does not show its beginning`() {
        let text = "postgres://user:secret@host/db"
        for limit in 0...text.count {
            let shown = ForeignText.escaped(text, limit: limit)
            #expect(shown == String("postgres://user:…@host/db".prefix(limit)))
        }
        #expect(ForeignText.escaped(text, limit: .max) == "postgres://user:…@host/db")
    }

    @Test func `A device token in place of a file's name is shortened`() throws {
        let token = String(repeating: "ab", count: 32)
        #expect("\(InputName(token, option: "tokens"))" == "--tokens abababab…")
        #expect(FileValue.isToken(token) && !FileValue.isToken("abab"))
        let groups = "<" + [String](repeating: "abababab", count: 8).joined(separator: " ") + ">"
        for form in [groups, "<\(token)>", " \(token)", "'\(token)'", "\(token),\(token)"] {
            #expect(FileValue.isToken(form), "\(form)")
            for file in [form, form + "/x"] {
                let shown = "\(InputName(file, option: "output"))"
                #expect(shown.contains("abababab") && shown.contains("…"), "\(shown)")
                #expect(!shown.replacing(" ", with: "").contains("abababababababab"), "\(shown)")
            }
            #expect(!"\(InputName(form))".contains(token))
        }
        #expect("\(InputName(token + "/x/y", option: "output"))" == "--output abababab…/x/y")
        for file in [token + ".csv", "lists/" + token, "/" + token + "/x", "/tmp"] {
            #expect("\(InputName(file, option: "tokens"))" == "--tokens \(file)")
        }
    }

    @Test(
        arguments: [
            "this is not a private key in PEM form (-----BEGIN PRIVATE KEY-----): name the .p8 file",
            "/srv/MIGRATION/keys/AuthKey_ABC123DEFG.p8", "MIGRATION",
            "/srv/MIGRATION/2026/november/newsletter/production/campaigns/evening/export/tokens.txt",
            "MHcustomers/2026/november/newsletter/production/campaigns/evening/export/tokens",
            "MIIsland/2026/november/newsletter/production/campaigns/evening/export/tokens.txt",
            "eyJ", "eyJhbGciOiJFUzI1NiJ9",
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
