internal import BroadsideAPNs
import BroadsideEngine
internal import BroadsideHPACK
import BroadsideHTTP2
internal import BroadsideLedgerFormat
internal import BroadsideLists
internal import BroadsidePayloads
internal import BroadsidePolicy

extension Plan {
    /// The target number of connections, which the run may raise; nil if the number does not
    /// change.
    var connectionTarget: ConnectionTarget? {
        guard shape.grows else { return nil }
        return ConnectionTarget(
            connections: shape.connections, reactors: shape.reactors,
            active: shape.reactorsAtFirst)
    }

    /// Whether the list comes from standard input. If so, the ledger has a copy of it.
    var isOfStandardInput: Bool { options.tokens == .file(ListBytes.standardInput) }

    /// Settings of the run's reactors.
    func reactorSettings(manifest: Manifest) -> ReactorSettings {
        var settings = ReactorSettings(
            campaign: manifest.campaignNumber, authority: Array(authority.utf8),
            topic: headers.topic.map { Array($0.utf8) },
            pushType: Array(headers.pushType.rawValue.utf8),
            priority: Array("\(headers.priority.rawValue)".utf8),
            expiration: manifest.expirationSeconds.map { Array("\($0)".utf8) },
            collapseIdentifier: headers.collapseID.map { Array($0.utf8) },
            payload: payloads.set.templates[0].constantPayload,
            connections: shape.grows
                ? shape.connectionsMost
                : (shape.connections + shape.reactors - 1) / shape.reactors,
            streamsPerConnection: streamsPerConnection,
            milliRatePerConnection: options.ratePerConnection.map(milliRate),
            usesProviderToken: credential.kind == .providerToken,
            onLost: options.onLost,
            retryPolicy: RetryPolicy(
                maximumAttempts: options.maxAttempts, retryForNanoseconds: options.retryFor,
                longestDelayNanoseconds: RetryPolicy.longestDelay(
                    giveUpAfter: options.giveUpAfter ?? SendOptions.defaultGiveUpAfter)),
            requestTimeout: options.requestTimeout,
            giveUpAfter: options.giveUpAfter ?? SendOptions.defaultGiveUpAfter,
            giveUpAfterIsExplicit: options.giveUpAfter != nil, abortAfter: options.abortAfter,
            reactors: shape.reactors, seed: manifest.segmentNumber)
        settings.part = manifest.identity.partNumber
        if payloads.set.isPersonal { settings.personal = payloads.set }
        if payloads.set.hasRowCollapse { settings.collapseIdentifier = nil }
        settings.binary = binarySettings(expirationSeconds: manifest.expirationSeconds)
        settings.pace = options.pace
        settings.canaryCountsInvalid = !options.delivery.isUsed
        settings.keepsTokens = options.keepsTokens
        settings.mayHaveMaskedRows = isOfStandardInput && manifest.epochs.count > 1
        settings.nameToResolve = route.nameToResolve.host
        settings.tunnelTarget = route.tunnel?.target
        settings.sendsContentLength = options.sendsContentLength
        settings.indexingPolicy = options.headerIndexing
        return settings
    }
}
