import Glibc

/// Swift's runtime takes SIGQUIT for a crash, and writes pages of backtraces. It is a person's key
/// (Ctrl-\) or another program's word: the process ends by it, by the system's default, and leaves the
/// ledger as any kill does. If the parent process ignored it, it stays ignored.
func endQuietlyOnQuit() {
    var action = sigaction()
    // SAFETY: sigaction(2) sets the structure, which is ours during the call, and changes nothing.
    guard unsafe sigaction(SIGQUIT, nil, &action) == 0,
        // A handler: what a process inherits is none.
        action.sa_flags & SA_SIGINFO != 0
    else { return }
    signal(SIGQUIT, SIG_DFL)
}
