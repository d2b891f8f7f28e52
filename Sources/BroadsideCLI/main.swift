import Broadside
import Glibc

// A pipe that closes (a pager that is quit) ends the output, not the campaign.
signal(SIGPIPE, SIG_IGN)
BenchChild.endWithBench()
do {
    exit(try Program.run(Array(CommandLine.arguments.dropFirst())))
} catch {
    standardErrorLine("broadside: \(error.message)")
    OutputQueue.standardError.finish()
    exit(error.exitCode)
}
