import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideSupport
import BroadsideTLS

/// A client's credential, read and checked, and the settings that depend on it.
struct ClientCredential: Sendable {
    let credential: Credential
    let authorization: ClientAuthorization
    let route: Route
    let configuration: TLSConfigurationBox.Value

    /// Reads the files of the credential, the server and the proxy.
    init(_ source: APNsCredential, _ choices: ClientOptions) throws(BroadsideError) {
        var options = SendOptions()
        choices.server.apply(to: &options)
        try choices.proxy?.apply(to: &options)
        try source.apply(to: &options)
        var warnings: [String] = []
        credential = try Credential.read(options, warnings: &warnings)
        route = try Route.read(options, warnings: &warnings)
        for warning in warnings {
            choices.logger?.log(RunLogEntry(line: "broadside: warning: \(warning)"))
        }
        let context = try CampaignRun.tlsContext(options, credential, resumesSessions: true)
        configuration = route.tlsConfiguration(context)
        authorization = try ClientAuthorization(
            credential, logger: choices.logger, nowSeconds: Clock.now().wallMilliseconds / 1000)
        assert((authorization.value == nil) == (credential.kind == .certificate))
    }

    /// Checks that a client can replace another credential with this one.
    func checkSuccession(of other: ClientCredential) throws(CampaignError) {
        guard credential.kind == other.credential.kind else {
            throw CampaignError(
                .invalid, property: "APNsCredential",
                "the credential is of another kind (\(credential.summary)): make another client")
        }
        guard credential.teamID == other.credential.teamID else {
            throw CampaignError(
                .invalid, property: "APNsCredential",
                "the credential is of another team (\(credential.summary)): make another client")
        }
        do throws(BroadsideError) {
            // A push always names its topic.
            try credential.checkSuccession(
                of: other.credential, headers: NotificationHeaders(topic: ""))
        } catch {
            throw CampaignError(error)
        }
    }
}
