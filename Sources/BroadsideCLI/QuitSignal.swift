import Glibc

/// Makes SIGQUIT end the process, as the system does by default. Swift's runtime treats the signal
/// as a crash and writes pages of backtraces. But SIGQUIT is not a crash: the user (Ctrl-\) or
/// another program sends it. The ledger survives SIGQUIT like any other kill. If the parent process
/// ignored the signal, it stays ignored.
func endQuietlyOnQuit() {
    var action = sigaction()
    // SAFETY: sigaction(2) sets the structure, which is ours during the call, and changes nothing.
    guard unsafe sigaction(SIGQUIT, nil, &action) == 0,
        // A handler is never inherited, so this one is the runtime's.
        action.sa_flags & SA_SIGINFO != 0
    else { return }
    signal(SIGQUIT, SIG_DFL)
}
