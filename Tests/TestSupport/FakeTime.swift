import Foundation

/// Debian's libfaketime and nss_wrapper: another clock, and other names, for one process.
package enum FakeTime {
    /// The environment of a process whose wall clock is off by so much (`+2h`, `-25m`). Its
    /// monotonic clock goes on as it is.
    package static func fixed(_ offset: String) throws -> [String: String] {
        try preload("faketime/libfaketimeMT.so.1", "faketime").merging([
            "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
        ]) { $1 }
    }

    /// The environment of a process whose wall clock is so many seconds behind the start of a half-hour,
    /// by which provider tokens are dated: the same one in all tests of a process.
    package static func inWindow(_ second: Int) throws -> [String: String] {
        try fixed(offset(inWindow: second))
    }

    /// By how much the clock has to be off for that, in libfaketime's words.
    package static func offset(inWindow second: Int) -> String {
        let offset = window + second - Int(Date().timeIntervalSince1970)
        return offset < 0 ? "\(offset)" : "+\(offset)"
    }

    /// The half-hour after the one in which the tests began.
    private static let window = (Int(Date().timeIntervalSince1970) / 1800 + 1) * 1800

    /// The environment of a process whose wall clock is off by what a file says, at any time.
    package static func following(_ file: String) throws -> [String: String] {
        try preload("faketime/libfaketimeMT.so.1", "faketime").merging([
            "FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            // A file keeps its own times, or it would seem to be written to all the time.
            "NO_FAKE_STAT": "1",
        ]) { $1 }
    }

    /// The environment of a process that finds its names in a file like `/etc/hosts`.
    package static func names(in hosts: String) throws -> [String: String] {
        try preload("libnss_wrapper.so", "libnss-wrapper").merging(["NSS_WRAPPER_HOSTS": hosts]) {
            $1
        }
    }

    /// Removes the clocks in shared memory of processes that are gone. libfaketime names them after the
    /// process; one that is killed leaves its clock behind, and a later process of the same number fails
    /// with it.
    private static func removeStaleClocks() {
        let folder = "/dev/shm"
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            guard
                let number = name.wholeMatch(
                    of: #/(?:sem\.faketime_sem_|faketime_shm_)(\d+)/#)?.output.1,
                access("/proc/\(number)", F_OK) != 0
            else { continue }
            unlink("\(folder)/\(name)")
        }
    }

    private static func preload(_ name: String, _ package: String) throws -> [String: String] {
        if package == "faketime" { removeStaleClocks() }
        for machine in ["x86_64", "aarch64"] {
            let path = "/usr/lib/\(machine)-linux-gnu/\(name)"
            if access(path, R_OK) == 0 { return ["LD_PRELOAD": path] }
        }
        throw TestFailure("\(package) is not installed: run tools/install-packages test")
    }
}
