import BroadsideTestSupport
import Testing

/// What one more notification costs in calls to the allocator and to the reference counting of the
/// Swift runtime, seen from outside of the real command: the same run with more rows, the
/// difference divided by the rows.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SteadyStateTests {
    private static let few = 50_000
    private static let many = 150_000

    @Test(arguments: ["strict", "compact", "current"])
    func `A notification allocates nothing and counts no reference`(indexingPolicy: String) throws {
        let simulation = try Simulation(["--fast", "--hpack-lint-profile", indexingPolicy])
        let counter = try CallCounter()
        let options = ["--connections", "4", "--reactors", "1", "--hpack", indexingPolicy]
        let few = try counter.send(rows: Self.few, to: simulation, options)
        let many = try counter.send(rows: Self.many, to: simulation, options)
        func each(_ name: String) -> Double {
            Double(many[name] - few[name]) / Double(Self.many - Self.few)
        }
        // A chunk of the list is an object and another allocation. It holds a thirtieth of a second's
        // rows: 30 at the very least, a thousand on a fast machine. Besides, one in about 600 rows was
        // measured, on fast machines and slow ones.
        let chunks = each("objects")
        #expect(chunks < 0.03)
        #expect(each("own_allocations") < 2.5 * chunks + 0.002)
        // OpenSSL takes three pieces for a record that it seals and one for a record that it opens,
        // and there are about thirty requests in a full record: never one a notification.
        #expect(each("openssl_allocations") < 0.5)
        // A turn of the reactor counts some, a chunk about twenty; one per notification would be 1.
        #expect(each("retains") < 0.1 + 20 * chunks)
        #expect(each("releases") < 0.1 + 25 * chunks)
        #expect(each("accesses") < 0.25)
        // The shim does count: the start of a run allocates and retains thousands of times.
        #expect(few["own_allocations"] > 500 && few["retains"] > 500 && few["accesses"] > 500)
        #expect(few["openssl_allocations"] > 5000 && few["objects"] > 100)
    }
}
