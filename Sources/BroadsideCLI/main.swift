import Broadside
import BroadsideSupport
import BroadsideTLS
import Glibc

holdStandardDescriptors()
TLSLibrary.keepAtExit()
// A pipe that closes (a pager that is quit) ends the output, not the campaign.
signal(SIGPIPE, SIG_IGN)
// Who started this process may ignore it, and then no code of a command could be learned.
signal(SIGCHLD, SIG_DFL)
// A limit on the size of files (RLIMIT_FSIZE) is a failed write, like a full disk: said, and tidied up.
signal(SIGXFSZ, SIG_IGN)
endQuietlyOnQuit()
BenchChild.endWithBench()
var code: Int32
do {
    code = try Program.run(Array(CommandLine.arguments.dropFirst()))
} catch {
    // Without a message nothing is wrong: the reader of the output had enough.
    if error.exitCode != ExitCode.complete { standardErrorLine("broadside: \(error.message)") }
    code = error.exitCode
}
code = endOutput(code)
OutputQueue.standardError.finish()
exit(code)
