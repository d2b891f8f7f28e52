import BroadsideTestSupport
import Foundation

/// The file system of `Tests/Servers/failing_disk.py`, for which nobody but one command has eyes.
enum FailingDisk {
    /// The words that run a command with the file system at `disk` in a directory. What is left of it
    /// lies in `back` then, what failed is told in `disk.log`, and `back.fail` says what does.
    static func words(_ path: String, _ command: [String]) -> [String] {
        let script = """
            mkdir -p \(path)/back \(path)/disk
            timeout 200 /usr/bin/python3 -B \(Tool.packageRoot)/Tests/Servers/failing_disk.py \
                \(path)/back \(path)/disk >\(path)/disk.log 2>&1 &
            disk=$!
            until mountpoint -q \(path)/disk; do
                kill -0 $disk || exit 99
                sleep 0.05
            done
            "$@"
            code=$?
            umount -l \(path)/disk
            wait
            exit $code
            """
        return ["unshare", "--mount", "bash", "-c", script, "bash"] + command
    }

    /// Whether this user may have a file system in user space.
    static let isAllowed: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        let words = Self.words(directory.path, ["true"])
        return (try? Subprocess.run(words[0], Array(words.dropFirst()), in: directory)) != nil
    }()
}
