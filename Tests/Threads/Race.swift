import Glibc
import Synchronization

/// What two threads count, with a lock and without: thread sanitizer has to report the latter.
final class Counters: @unchecked Sendable {
    let guarded = Mutex<Int>(0)
    var unguarded = 0
}

let counters = Counters()

@main enum Race {
    static func main() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                Race.count()
                return nil
            }, nil)
        count()
        pthread_join(thread, nil)
    }

    static func count() {
        for _ in 0..<1000 {
            counters.unguarded += 1
            counters.guarded.withLock { $0 += 1 }
        }
    }
}
