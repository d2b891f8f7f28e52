import Foundation

/// Runs `body` while a signal to stop waits, for this thread alone: nobody else sees it, and the
/// thread takes it only where it looks.
///
/// - Returns: Whether the signal still waited afterwards; it is taken then.
package func withWaitingStop(_ body: () throws -> Void) rethrows -> Bool {
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, SIGTERM)
    var before = sigset_t()
    pthread_sigmask(SIG_BLOCK, &mask, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    pthread_kill(pthread_self(), SIGTERM)
    try body()
    var limit = timespec()
    return sigtimedwait(&mask, nil, &limit) == SIGTERM
}
