import Campaign
import Ring
import Support

/// The endpoint's name, or its proxy's: a name server is asked for its addresses, and may be silent.
extension ReactorStateMachine where Records: ~Copyable {
    /// Without a reply for so long, or for half of `--give-up-after`, a look-up is a trouble that is told.
    static var lookupPatience: UInt64 { 5 * second }

    /// Asks for the addresses; no connection is opened before they are there.
    mutating func lookUpName(_ now: Now) {
        connections.addresses.resolution = .asked(since: now.nanoseconds)
        connections.hasToldSlowLookup = false
        submissions.append(.resolve)
    }

    mutating func resolved(_ result: Result<[SocketAddress], ResolutionFailure>, now: Now) {
        switch result {
        case .success(let found):
            var used = Set<Int>()
            for index in 0..<connections.count where connections[index].phase != .idle {
                used.insert(connections[index].address)
            }
            connections.addresses.update(found, now: now.nanoseconds, isInUse: used.contains)
        case .failure(let failure):
            let trouble = ConnectionTrouble(.resolve, failure.message)
            run.note(trouble)
            if connections.resolutionFailures == 0 { tellLookup(trouble, now: now) }
            connections.addresses.resolution = .none
            connections.addresses.wait(until: now.nanoseconds + second)
            connections.resolutionFailures += 1
            if connections.resolutionFailures >= Self.hopelessAttempts,
                connections.addresses.entries.isEmpty,
                !settings.giveUpAfterIsExplicit
            {
                run.stop(.gaveUp(trouble))
            }
        }
    }

    /// Tells once of a look-up that takes long: meanwhile nothing else says why no connection is opened.
    mutating func checkLookup(_ now: Now) {
        guard !connections.hasToldSlowLookup, let trouble = slowLookup(now) else { return }
        connections.hasToldSlowLookup = true
        run.note(trouble)
        tellLookup(trouble, now: now)
    }

    /// What is wrong with the look-up that is out; nil where none is, or not for long.
    func slowLookup(_ now: Now) -> ConnectionTrouble? {
        guard case .asked(let since) = connections.addresses.resolution else { return nil }
        let waited = now.nanoseconds - min(now.nanoseconds, since)
        guard waited >= min(Self.lookupPatience, settings.giveUpAfter / 2) else { return nil }
        return ConnectionTrouble(
            .resolve,
            "no name server has replied for \(waited / second) s to the look-up of "
                + settings.nameToResolve)
    }

    private mutating func tellLookup(_ trouble: ConnectionTrouble, now: Now) {
        metrics.events.append(
            RunEvent(.lookup, .warning, trouble.message, milliseconds: now.wallMilliseconds))
    }
}
