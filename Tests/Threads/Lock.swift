import Glibc
import Synchronization

/// A lock that two threads contend for, used as it should be: thread sanitizer has nothing to report.
final class Counters: Sendable {
    let values = Mutex<[Int]>(Array(repeating: 0, count: 64))
}

let counters = Counters()

@main enum Lock {
    static func main() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                Lock.count()
                return nil
            }, nil)
        count()
        pthread_join(thread, nil)
        precondition(counters.values.withLock { $0.reduce(0, +) } == 400_000)
    }

    static func count() {
        for step in 0..<200_000 {
            counters.values.withLock { $0[step & 63] += 1 }
        }
    }
}
