import BroadsideCampaigns
import BroadsideSupport
import BroadsideTLS
import Glibc

holdStandardDescriptors()
TLSLibrary.keepAtExit()
// A closed pipe (such as a pager that was quit) ends the output, not the campaign.
signal(SIGPIPE, SIG_IGN)
// The parent process may have ignored SIGCHLD, which would hide the exit codes of child processes.
signal(SIGCHLD, SIG_DFL)
// A write beyond the limit on file size (RLIMIT_FSIZE) then fails, and is handled and reported like
// a full disk.
signal(SIGXFSZ, SIG_IGN)
endQuietlyOnQuit()
BenchChild.endWithBench()
var code: Int32
do {
    code = try Program.run(Program.arguments())
} catch {
    // An error with exit code `complete` has no message: the reader closed the output.
    if error.exitCode != ExitCode.complete { standardErrorLine("broadside: \(error.message)") }
    code = error.exitCode
}
code = endOutput(code)
OutputQueue.standardError.finish()
exit(code)
