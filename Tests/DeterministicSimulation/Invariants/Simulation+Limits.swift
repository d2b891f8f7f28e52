import Broadside
import BroadsidePolicy
import BroadsideSupport

extension Simulation {
    /// Any 100 ms have at most the requests that the rate allows, and one burst. A violation of a
    /// low rate shows only within 10 s. In that time, reactors may have left and joined the rate
    /// limiter each second.
    func checkPace(_ process: SimulatedProcess) {
        checkPace(process, within: 100 * millisecond, joins: 1)
        checkPace(process, within: 10 * second, joins: 10)
        checkRamp(process)
    }

    private func checkPace(_ process: SimulatedProcess, within window: UInt64, joins: Double) {
        var first = 0
        var count = 0
        let rising = risingRates(process)
        for (index, entry) in process.requestTimes.enumerated() {
            count += entry.count
            while process.requestTimes[first].time + window <= entry.time {
                count -= process.requestTimes[first].count
                first += 1
            }
            guard
                let rate = highestRate(
                    process, within: window, before: entry.time,
                    risen: rising.isEmpty ? nil : rising[min(index, rising.count - 1)])
            else { continue }
            let reactors = Double(plan.reactors)
            let burst = max(1, rate / 100)
            // If reactors share the rate, each has a burst of its share. Each may also send one
            // more request before another learns that it has to share.
            let limit =
                rate * Double(window) / 1e9
                + (plan.reactors == 1 ? burst : joins * (max(burst, reactors) + reactors))
            if Double(count) > limit + 1e-6 {
                let span = window / millisecond
                fail("\(count) requests within \(span) ms at a rate of \(rate) per second")
                return
            }
        }
    }

    /// The highest rate in force within a window before an instant; nil if there was no limit.
    ///
    /// - Parameter risen: Value of the first rate at that instant, if that rate rises.
    private func highestRate(
        _ process: SimulatedProcess, within window: UInt64, before time: UInt64, risen: Double?
    ) -> Double? {
        var highest = 0.0
        for (index, entry) in process.rates.enumerated() where entry.time <= time {
            let end = index + 1 < process.rates.count ? process.rates[index + 1].time : .max
            guard end > time - min(time, window) else { continue }
            guard let rate = entry.rate else { return nil }
            highest = max(highest, index == 0 ? risen ?? Double(rate) : Double(rate))
        }
        return highest
    }

    // MARK: A rate that rises

    /// Time at which the operator set another rate; `.max`: never.
    private func rampEnd(_ process: SimulatedProcess) -> UInt64 {
        process.rates.count > 1 ? process.rates[1].time : .max
    }

    /// Seconds of sending of a process and the processes before it; 0 if no rate rises, or another
    /// rate was set.
    func rampSeconds(_ process: SimulatedProcess?) -> Double {
        guard let process, let ramp = plan.ramp, rampEnd(process) == .max else { return 0 }
        var seconds = process.rampBefore
        for (before, after) in zip(process.requestTimes, process.requestTimes.dropFirst()) {
            seconds += ramp.counted(from: before.time, to: after.time)
        }
        // Time after the last request may count, too.
        guard let last = process.requestTimes.last else { return seconds }
        return seconds + ramp.counted(from: last.time, to: clock)
    }

    /// The rate at each of a process's requests until the rise ends; empty if no rate rises.
    private func risingRates(_ process: SimulatedProcess) -> [Double] {
        guard let ramp = plan.ramp else { return [] }
        var seconds = process.rampBefore
        var previous: UInt64?
        var rates: [Double] = []
        for entry in process.requestTimes where entry.time <= rampEnd(process) {
            if let previous { seconds += ramp.counted(from: previous, to: entry.time) }
            previous = entry.time
            rates.append(ramp.rate(after: seconds))
        }
        return rates
    }

    /// Up to any instant, the number of requests is at most the integral of the rate over the
    /// sending time, and the bursts.
    private func checkRamp(_ process: SimulatedProcess) {
        guard let ramp = plan.ramp else { return }
        cover(.ramp)
        var seconds = process.rampBefore
        let before = ramp.requests(within: seconds)
        var previous: UInt64?
        var count = 0
        for entry in process.requestTimes where entry.time < rampEnd(process) {
            if let previous { seconds += ramp.counted(from: previous, to: entry.time) }
            previous = entry.time
            count += entry.count
            let rate = ramp.rate(after: seconds)
            let reactors = Double(plan.reactors)
            let joins = 1 + (seconds - process.rampBefore)
            // If a burst is one request, a late request is made up for by at most half a request.
            let burst =
                plan.reactors == 1
                ? max(1, rate / 100) + 0.5 : joins * (max(1, rate / 100, reactors) + reactors)
            let limit = ramp.requests(within: seconds) - before + burst
            if Double(count) > limit + 1e-6 {
                fail(
                    "\(count) requests within \(seconds) s of sending, at a rate that has risen to "
                        + "\(rate) per second")
                return
            }
        }
    }

    /// Over its whole life, a connection carries at most what its own rate allows, and one burst.
    func checkConnectionPace(_ process: SimulatedProcess) {
        guard let rate = plan.ratePerConnection.map({ Double($0) }) else { return }
        for link in links where link.epoch == process.epoch {
            let seconds = Double(link.lastHeardAt - min(link.lastHeardAt, link.openedAt)) / 1e9
            let limit = rate * seconds + max(1, rate / 100) + 1
            if Double(taps[link.id].requests.count) > limit {
                fail("\(taps[link.id].requests.count) requests on link \(link.id) in \(seconds) s")
            }
        }
    }

    /// Until the first 200, only a few requests are in flight.
    func checkEarly() {
        var accepted: UInt64 = 0
        var inFlight = 0
        for reactor in process.reactors {
            let statistics = reactor.machine.snapshot()
            accepted += statistics.counts[.accepted]
            inFlight += statistics.inFlight
        }
        process.hasAccepted = accepted > 0
        if accepted == 0, inFlight > plan.abortAfter {
            fail("\(inFlight) requests in flight before anything was accepted")
        }
    }

    /// A connection that responds to PING is not closed because of a missing response to PING.
    func checkPatience(_ id: Int) {
        let faults = process.faults
        guard faults.answersPings, faults.silence + faults.stall + faults.violation == 0,
            faults.halfClose + faults.duplicate == 0, faults.latency < second,
            faults.trickle == 0, !process.coordinator.isStopping,
            let failure = process.coordinator.lastTrouble?.message, failure.contains("PING"),
            links[id].isOpenAtServer, failure != process.excusedTrouble
        else { return }
        // A server that broke HTTP/2 no longer responds. One that reads a kilobyte per second may
        // not have reached the PING behind other frames. In both cases, the process may report this
        // trouble for a while.
        let isSlow = links[id].isSlow && links[id].heardAhead > 0
        guard servers[id]?.hasMisbehaved != true, !isSlow else {
            process.excusedTrouble = failure
            return
        }
        fail("link \(id) lives, and is closed: \(failure)")
    }

    /// No byte waits for more than 30 s, and the time between two checks, for a network that does
    /// not accept it.
    func checkWaiting(_ id: Int) {
        guard let first = links[id].waiting.first, clock - since(first.since) > 31 * second else {
            return
        }
        fail("bytes of link \(id) wait for \((clock - first.since) / second) s in the client")
    }

    /// After its server broke the protocol, a connection gives up its requests: before the GOAWAY
    /// that reports the error, no request is left to send.
    ///
    /// - Parameter requests: Number of requests that were submitted before.
    /// - Parameter requests: How many had been submitted before.
    func checkBlame(_ id: Int, hadBlamed: Bool, requests: Int) {
        guard taps[id].hasBlamed, !hadBlamed else { return }
        if links[id].heardAhead > 0 || taps[id].requests.count > requests {
            fail("link \(id) still sends requests although its server broke HTTP/2")
        }
    }

    /// The request timeout begins with the write, and again with the write of the last part. A
    /// request must not be canceled before it expires.
    func checkCancelling(_ stream: Int32, link: Int) {
        // The client also cancels requests whose responses are invalid.
        guard servers[link]?.hasMisbehaved != true else { return }
        for copy in journal.copies where copy.link == link && copy.stream == stream {
            if clock < process.takesFrom, copy.toldAt == nil, !process.coordinator.isStopping {
                fail(
                    "stream \(stream) of link \(link) is taken back before it is looked at what came "
                        + "while the process was stopped")
            }
            let waited = clock - max(copy.sentAt, taps[link].completed[stream] ?? 0)
            // The network may have accepted the bytes up to 100 ms after the timeout began.
            if waited + 100 * millisecond < plan.requestTimeout, copy.toldAt == nil {
                fail(
                    "stream \(stream) of link \(link) is taken back after \(waited / millisecond) ms"
                )
            }
        }
    }
}
