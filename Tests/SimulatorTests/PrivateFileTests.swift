import BroadsideSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideSimulator

/// A file that can't be read to its end is never taken for a shorter one.
@Suite(.timeLimit(.minutes(60))) struct PrivateFileTests {
    /// The address 0 is nobody's: the first read fails.
    private let failing = "/proc/self/mem"

    @Test func `A read that fails is exit 5 with option, file and cause`() throws {
        let error = try #require(
            #expect(throws: SimulatorError.self) {
                try PrivateFile.read(failing, option: "scenario")
            })
        #expect(error.exitCode == 5 && error.message.hasPrefix("--scenario \(failing): Input/"))
        let lines = try #require(
            #expect(throws: SimulatorError.self) {
                try PrivateFile.forEachLine(failing) { _ in true }
            })
        #expect(lines.exitCode == 5 && lines.message.hasPrefix("--state \(failing): Input/"))
        let folder = try #require(
            #expect(throws: SimulatorError.self) { try PrivateFile.read("/", option: "state") })
        #expect(folder.exitCode == 2 && folder.message.contains("Is a directory"))
    }

    @Test func `A journal on a full disk is exit 5 at the start`() throws {
        let error = try #require(
            #expect(throws: SimulatorError.self) { try JournalFile(path: "/dev/full") })
        #expect(error.exitCode == 5 && error.message.hasPrefix("--journal /dev/full: No space"))
    }

    @Test func `A file above the limit is refused`() throws {
        let folder = Folder()
        let path = try folder.write("file", "0123456789")
        #expect(try PrivateFile.read(path, option: "state", limit: 10).count == 10)
        #expect(throws: SimulatorError.self) {
            try PrivateFile.read(path, option: "state", limit: 9)
        }
    }

    /// As of a file system that is asked from a thread to which a signal is sent.
    @Test func `A read that a signal interrupts is continued`() throws {
        let folder = Folder()
        let path = folder.file("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let writer = open(path, O_RDWR | O_CLOEXEC)
        try #require(writer >= 0)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        var before = sigaction()
        // No SA_RESTART: the kernel does not begin again by itself.
        try #require(sigaction(SIGUSR2, &action, &before) == 0)
        defer { sigaction(SIGUSR2, &before, nil) }

        let reader = Mutex<pthread_t?>(nil)
        let result = Mutex<[UInt8]?>(nil)
        let thread = try WorkerThread {
            // The threads of tests block signals, and so do those that they start.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGUSR2)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            reader.withLock { $0 = pthread_self() }
            let bytes = try? PrivateFile.read(path, option: "scenario")
            result.withLock { $0 = bytes }
        }
        #expect(write(writer, "abc", 3) == 3)
        var waiting: Int32 = 1
        while waiting > 0 {
            usleep(1000)
            #expect(ioctl(writer, UInt(FIONREAD), &waiting) == 0)
        }
        // It has the beginning, and waits for the rest.
        for _ in 0..<20 {
            let reader = reader.withLock { $0 }
            if let reader, !thread.hasEnded { pthread_kill(reader, SIGUSR2) }
            usleep(2000)
        }
        _ = write(writer, "def", 3)
        close(writer)
        thread.join()
        #expect(result.withLock { $0 } == Array("abcdef".utf8))
    }
}
