import Testing

@testable import BroadsideEngine

@Suite struct ResponseWaitTests {
    @Test func `Only time in which a response could have come is counted`() {
        var wait = ResponseWait(now: 100)
        wait.count(until: 120, lastResponse: 0, isPossible: true)
        wait.count(until: 150, lastResponse: 0, isPossible: false)
        wait.count(until: 160, lastResponse: 0, isPossible: true)
        #expect(wait.nanoseconds == 30)
        wait.skip(to: 200)
        wait.count(until: 201, lastResponse: 0, isPossible: true)
        #expect(wait.nanoseconds == 31)
    }

    @Test func `A response begins the sum again, from its time`() {
        var wait = ResponseWait(now: 100)
        wait.count(until: 130, lastResponse: 0, isPossible: true)
        wait.count(until: 150, lastResponse: 140, isPossible: true)
        #expect(wait.nanoseconds == 10)
        wait.count(until: 160, lastResponse: 140, isPossible: true)
        #expect(wait.nanoseconds == 20)
    }

    @Test
    func `A response that another reactor got after this one read its clock counts from its time`()
    {
        var wait = ResponseWait(now: 100)
        wait.count(until: 130, lastResponse: 135, isPossible: true)
        #expect(wait.nanoseconds == 0)
        wait.count(until: 133, lastResponse: 135, isPossible: true)
        #expect(wait.nanoseconds == 0)
        wait.count(until: 145, lastResponse: 135, isPossible: true)
        #expect(wait.nanoseconds == 10)
    }
}
