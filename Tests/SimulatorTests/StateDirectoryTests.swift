import BroadsideAPNs
import Foundation
import Testing

@testable import BroadsideSimulator

@Suite struct StateDirectoryTests {
    @Test func `A state directory is filled on first use and reused later`() throws {
        let folder = Folder()
        let path = folder.file("state")
        let first = try StateDirectory(path: path)
        let all = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
        let others = try #require(first.config.other_keys).map(\.key_id)
        #expect(others.count == 6)
        var expected = [
            "AuthKey_\(first.keyID).p8", "AuthKey_\(first.keyID).pub.pem", "ca.pem",
            "client-mdm.key", "client-mdm.pem", "client-single.key", "client-single.pem",
            "client.key", "client.pem", "config.json", "other", "server.key", "server.pem",
        ]
        expected += others.flatMap { ["other/AuthKey_\($0).p8", "other/AuthKey_\($0).pub.pem"] }
        for name in ["development", "development-by-name", "production", "revoked"] {
            expected += ["other/client-\(name).key", "other/client-\(name).pem"]
        }
        #expect(all == expected.sorted())
        let names = all.filter { $0 != "other" }
        var contents: [String: Data] = [:]
        for name in names {
            contents[name] = try Data(contentsOf: URL(fileURLWithPath: first.file(name)))
            let attributes = try FileManager.default.attributesOfItem(atPath: first.file(name))
            let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue
            let isPrivate = name.hasSuffix(".key") || name.hasSuffix(".p8")
            #expect(mode == (isPrivate ? 0o600 : 0o644), "\(name)")
        }
        let second = try StateDirectory(path: path)
        #expect(second.keyID == first.keyID)
        #expect(second.teamID == first.teamID)
        _ = try second.credentials()
        for name in names {
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: first.file(name))) == contents[name],
                "\(name) was made anew")
        }
    }

    @Test func `A directory that a killed start left is filled again, and keeps other files`()
        throws
    {
        let folder = Folder()
        let path = folder.file("state")
        let files = FileManager.default
        var authKey = ""
        for lost in ["config.json", "server.key", "client.pem"] {
            let state = try StateDirectory(path: path)
            #expect(state.authKeyFile != authKey)
            #expect(authKey.isEmpty || !files.fileExists(atPath: authKey))
            authKey = state.authKeyFile
            let names = try files.subpathsOfDirectory(atPath: path).filter { $0 != "other" }
            _ = try folder.write("state/.unfinished", names.joined(separator: "\n"))
            try files.removeItem(atPath: state.file(lost))
        }
        _ = try folder.write("state/notes.txt", "x")
        let error = #expect(throws: SimulatorError.self) { _ = try StateDirectory(path: path) }
        #expect(error?.message.contains("notes.txt") == true)
        try files.removeItem(atPath: "\(path)/notes.txt")
        _ = try StateDirectory(path: path).credentials()
        #expect(!files.fileExists(atPath: "\(path)/.unfinished"))
    }

    @Test func `config.json has the key, team and topic that clients need`() throws {
        let folder = Folder()
        let state = try StateDirectory(path: folder.file("state"))
        let data = try Data(contentsOf: URL(fileURLWithPath: state.file("config.json")))
        let config = try #require(
            try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(config["key_id"] as? String == state.keyID)
        #expect(config["team_id"] as? String == state.teamID)
        #expect(config["topic"] as? String == state.topic)
        #expect(state.keyID.count == 10 && state.teamID.count == 10)
    }

    @Test func `A start on a port that is taken leaves no state directory`() throws {
        let running = try EndpointHarness()
        for path in [
            \SimulatorOptions.binaryListen, \.feedbackListen, \.controlListen,
        ] {
            let folder = Folder()
            var options = SimulatorOptions(state: folder.file("state"))
            options.listen = "127.0.0.1:0"
            options.binaryListen = "127.0.0.1:0"
            options[keyPath: path] = running.endpoint.address
            #expect(throws: SimulatorError.self) { try ProviderEndpoint(options) }
            #expect(!FileManager.default.fileExists(atPath: folder.file("state")))
        }
        let folder = Folder()
        var options = SimulatorOptions(state: folder.file("state"))
        options.listen = running.endpoint.address
        #expect(throws: SimulatorError.self) { try ProviderEndpoint(options) }
        #expect(!FileManager.default.fileExists(atPath: folder.file("state")))
        options.listen = "127.0.0.1:0"
        _ = try ProviderEndpoint(options).stop()
        #expect(FileManager.default.fileExists(atPath: folder.file("state")))
    }

    @Test func `A malformed config.json is exit 2`() throws {
        let folder = Folder()
        _ = try folder.write("config.json", "{\"key_id\": 1}")
        let error = #expect(throws: SimulatorError.self) {
            _ = try StateDirectory(path: folder.path)
        }
        #expect(error?.exitCode == 2)
    }

    @Test func `A key that config.json adds is accepted`() throws {
        let folder = Folder()
        let state = try StateDirectory(path: folder.file("state"))
        let other = try StateDirectory(path: folder.file("other"))
        try FileManager.default.copyItem(
            atPath: other.file("AuthKey_\(other.keyID).pub.pem"), toPath: state.file("other.pem"))
        let config = """
            {"key_id": "\(state.keyID)", "team_id": "\(state.teamID)", "topic": "a.b",
             "other_topic": "a.c", "other_keys": [
             {"key_id": "\(other.keyID)", "team_id": "\(state.teamID)", "public_key": "other.pem"}]}
            """
        _ = try folder.write("state/config.json", config)
        let credentials = try StateDirectory(path: state.path).credentials()
        #expect(credentials.keys.map(\.keyID) == [state.keyID, other.keyID])
    }

    @Test func `The server's certificate has the names given on first use, and no others`()
        throws
    {
        let folder = Folder()
        let names = ["api.push.apple.com", "api.sandbox.push.apple.com"]
        let path = try StateDirectory(path: folder.file("state"), serverNames: names).path
        _ = try StateDirectory(path: path)
        _ = try StateDirectory(path: path, serverNames: [names[1]])
        let error = #expect(throws: SimulatorError.self) {
            _ = try StateDirectory(path: path, serverNames: [names[0], "api.example.com"])
        }
        #expect(error?.exitCode == 2)
        #expect(error?.message.contains("--server-name api.example.com") == true)
        // As openssl reads it.
        let text = try run([
            "openssl", "x509", "-in", "\(path)/server.pem", "-noout", "-ext", "subjectAltName",
        ]).output
        #expect(
            text.contains(
                "DNS:localhost, DNS:\(names[0]), DNS:\(names[1]), IP Address:127.0.0.1"),
            "\(text)")
    }

    /// Vector V31.
    @Test func `The topics extension encodes as vector V31 and is parsed back`() {
        let app = "com.yourcompany.yourexampleapp"
        let vector = hexBytes(
            "3081910c1e636f6d2e796f7572636f6d70616e792e796f75726578616d706c6561707030050c0361"
                + "70700c23636f6d2e796f7572636f6d70616e792e796f75726578616d706c656170702e766f6970"
                + "30060c04766f69700c2b636f6d2e796f7572636f6d70616e792e796f75726578616d706c656170"
                + "702e636f6d706c69636174696f6e300e0c0c636f6d706c69636174696f6e")
        let topics = [
            (topic: app, kind: "app"), (topic: app + ".voip", kind: "voip"),
            (topic: app + ".complication", kind: "complication"),
        ]
        #expect(TopicsExtension.encode(topics) == vector)
        func scope(_ der: [UInt8]) -> CertificateScope? {
            CertificateScope(
                topicsExtension: der, userID: nil, commonName: nil, environments: [])
        }
        #expect(scope(vector)?.topics == topics.map(\.topic))
        for count in 0..<vector.count { #expect(scope(Array(vector[..<count])) == nil) }
    }

    @Test func `Contradictory or malformed options of the simulator are exit 2`() {
        func fails(_ change: (inout SimulatorOptions) -> Void) -> Int32? {
            var options = SimulatorOptions(state: "/nonexistent/state")
            change(&options)
            do {
                try options.validate()
                return nil
            } catch {
                return error.exitCode
            }
        }
        #expect(fails { _ in } == nil)
        #expect(fails { $0.listen = "localhost" } == 2)
        #expect(fails { $0.listen = "example.com:1" } == 2)
        #expect(fails { $0.listen = "[::1]:0" } == nil)
        #expect(fails { $0.latencyJitterNanoseconds = 1 } == 2)
        #expect(
            fails {
                $0.badToken = 0.6; $0.unregistered = 0.6
            } == 2)
        #expect(fails { $0.threads = 0 } == 2)
        #expect(fails { $0.serverNames = ["api.push.apple.com", "a-1"] } == nil)
        for name in ["", "a..b", "-a.b", "a b", "a,IP:1.2.3.4", "A.b", "*.a"] {
            #expect(fails { $0.serverNames = [name] } == 2, "\(name)")
        }
        #expect(fails { $0.serverNames = Array(repeating: "a", count: 65) } == 2)
        #expect(
            fails {
                $0.isFast = true; $0.journal = "/tmp/x"
            } == 2)
    }
}
