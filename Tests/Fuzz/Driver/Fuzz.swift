import FuzzTargets

#if canImport(Glibc)
    import Glibc
#endif

/// Runs one fuzz target, named by the first argument.
///
///     fuzz TARGET FILE...              reads each file once
///     fuzz TARGET [-OPTION...] DIR...  libFuzzer, where it was built with it (`tools/fuzz`)
///     fuzz --list                      names the targets
@main enum Fuzz {
    nonisolated(unsafe) static var target = FuzzTarget.all[0]

    static func main() {
        let words = CommandLine.arguments
        guard words.count >= 2, words[1] != "--list" else {
            for target in FuzzTarget.all { print(target.name) }
            return
        }
        // libFuzzer starts itself again to merge, with its own options only.
        let inherited = getenv("FUZZ_TARGET").map { String(cString: $0) }
        let isOwnChild = words[1].hasPrefix("-") && inherited != nil
        let name = isOwnChild ? inherited! : words[1]
        guard let chosen = FuzzTarget.named(name) else {
            print("fuzz: there is no target \(name): fuzz --list names them")
            exit(2)
        }
        target = chosen
        #if FUZZING
            setenv("FUZZ_TARGET", name, 1)
            runFuzzer([words[0]] + words.dropFirst(isOwnChild ? 1 : 2))
        #else
            for path in words.dropFirst(2) { target.run(bytes(ofFile: path)) }
        #endif
    }

    private static func bytes(ofFile path: String) -> [UInt8] {
        guard let file = fopen(path, "rb") else {
            print("fuzz: \(path) can't be read")
            exit(2)
        }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 {
            bytes += buffer[..<count]
        }
        return bytes
    }
}

#if FUZZING
    /// libFuzzer's own entrance, for programs that have a `main` of their own.
    @_silgen_name("LLVMFuzzerRunDriver")
    private func LLVMFuzzerRunDriver(
        _ count: UnsafeMutablePointer<Int32>,
        _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
        _ read: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
    ) -> Int32

    private func runFuzzer(_ arguments: [String]) {
        var count = Int32(arguments.count)
        // libFuzzer keeps them to its end.
        let words = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(
            capacity: arguments.count + 1)
        for (place, argument) in arguments.enumerated() { words[place] = strdup(argument) }
        words[arguments.count] = nil
        var list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = words
        exit(
            LLVMFuzzerRunDriver(&count, &list) { start, count in
                // libFuzzer vouches for `count` bytes at `start`.
                Fuzz.target.run(Array(UnsafeBufferPointer(start: start, count: count)))
                return 0
            })
    }
#endif
