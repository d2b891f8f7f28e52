import BroadsideAPNs
import Testing

/// What certificates say about their use.
struct CertificateScopeTests {
    /// A topics extension as Apple's certificates have it: three topics, a long outer length.
    static let der = hexBytes(
        "3081910c1e636f6d2e796f7572636f6d70616e792e796f75726578616d706c6561707030050c03617070"
            + "0c23636f6d2e796f7572636f6d70616e792e796f75726578616d706c656170702e766f69703006"
            + "0c04766f69700c2b636f6d2e796f7572636f6d70616e792e796f75726578616d706c656170702e"
            + "636f6d706c69636174696f6e300e0c0c636f6d706c69636174696f6e")

    private func scope(
        _ der: [UInt8]?, voip: [UInt8]? = nil, commonName: String? = nil,
        environments: Set<Endpoints.Environment> = []
    ) -> CertificateScope? {
        CertificateScope(
            topicsExtension: der, voipExtension: voip, userID: "com.example.uid",
            commonName: commonName,
            environments: environments)
    }

    @Test func `A certificate's topics are those of its topics extension, else its UID`() throws {
        let app = "com.yourcompany.yourexampleapp"
        let several = try #require(scope(Self.der))
        #expect(several.topics == [app, app + ".voip", app + ".complication"])
        #expect(several.onlyTopic == nil)
        #expect(several.topicProblem(app, pushType: .alert) == nil)
        #expect(several.topicProblem("com.example.uid", pushType: .alert) != nil)
        #expect(several.topicProblem(nil, pushType: .alert) != nil)
        let one = try #require(scope(nil))
        #expect(one.onlyTopic == "com.example.uid")
        #expect(one.topicProblem(nil, pushType: .background) == nil)
        #expect(one.topicProblem(nil, pushType: .voip) != nil)
    }

    @Test func `A certificate for device management is for push type mdm only`() throws {
        let topic = "com.apple.mgmt.External.x"
        let management = try #require(
            CertificateScope(
                topicsExtension: nil, userID: topic, commonName: "APSP", environments: []))
        #expect(management.topicProblem(nil, pushType: .mdm) == nil)
        for type in [PushType.alert, .background] {
            #expect(management.topicProblem(nil, pushType: type) == .isForManagement(topic))
        }
    }

    @Test func `The VoIP extension adds a topic, and nothing if it holds no topic`() throws {
        let topic = "com.example.uid.voip"
        let string = [0x0c, UInt8(topic.utf8.count)] + Array(topic.utf8)
        let both = try #require(scope(nil, voip: string))
        #expect(both.topics == ["com.example.uid", topic])
        #expect(both.onlyTopic == "com.example.uid")
        #expect(both.topicProblem(topic, pushType: .voip) == nil)
        #expect(both.topicProblem(nil, pushType: .alert) == nil)
        for strange: [UInt8] in [
            [], [5, 0], Array(string.dropLast()), [0x0c, 3, 0x61, 0x62, 0x63],
        ] {
            #expect(scope(nil, voip: strange)?.topics == ["com.example.uid"])
        }
        #expect(scope(Self.der, voip: string)?.topics.count == 4)
        #expect(scope(Self.der, voip: string)?.onlyTopic == nil)
    }

    @Test func `A topics extension that is cut or changed at any byte never traps`() {
        for count in 0..<Self.der.count {
            #expect(scope(Array(Self.der.prefix(count))) == nil)
        }
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            var bent = Self.der
            bent[Int.random(in: 0..<bent.count, using: &generator)] ^= UInt8.random(
                in: 1...255, using: &generator)
            // Any answer will do, so long as there is one.
            _ = scope(bent)
        }
    }

    @Test
    func `A certificate's environments are those of its extensions, else of its common name`() {
        let name = "Apple Development IOS Push Services: com.example"
        #expect(scope(nil, commonName: name)?.environments == [.development])
        #expect(
            scope(nil, commonName: name, environments: [.production])?.environments
                == [.production])
        #expect(scope(nil, commonName: "Apple Push Services: x")?.environments == [])
    }

    @Test func `Certificates that sign apps are known by their common names`() {
        for kind in ["iPhone Distribution", "Apple Development", "Developer ID Application"] {
            #expect(CertificateScope.signsApps(commonName: "\(kind): ACME (DEF123GHIJ)"))
        }
        for name in [
            "Apple Push Services: com.example.app", "VoIP Services: com.example.app",
            "Apple Development IOS Push Services: com.example.app", "APSP:11-22",
            "Pass Type ID: pass.com.example", "Push",
        ] { #expect(!CertificateScope.signsApps(commonName: name), "\(name)") }
    }
}
