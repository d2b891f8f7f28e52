import SimulatedWorld

/// Runs seeds of the simulated world.
///
///     seeds 0..<500             runs seeds; the last line counts, exit status 1 where one failed
///     seeds --seed 42 --trace   runs one and tells what happens
func parseRange(_ text: String) -> Range<UInt64>? {
    let parts = text.split(separator: "..<")
    guard parts.count == 2, let first = UInt64(parts[0]), let end = UInt64(parts[1]), first < end
    else { return nil }
    return first..<end
}

var seeds: [UInt64] = []
var isTelling = false
var arguments = Array(CommandLine.arguments.dropFirst())
while !arguments.isEmpty {
    let argument = arguments.removeFirst()
    if argument == "--trace" {
        isTelling = true
    } else if argument == "--seed", let seed = arguments.first.flatMap({ UInt64($0) }) {
        arguments.removeFirst()
        seeds.append(seed)
    } else if let range = parseRange(argument) {
        seeds += range
    } else {
        print("usage: seeds FIRST..<END | seeds --seed N [--trace]")
        exitWith(2)
    }
}

var failures: [UInt64] = []
nameSeedsThatTrap()
giveMemoryBack()
for seed in seeds {
    runningSeed = seed
    let result = runSeed(seed, isTelling: isTelling)
    if let failure = result.failure {
        failures.append(seed)
        print("seed \(seed): \(failure)")
        print("    to see it: .build/release/seeds --seed \(seed) --trace")
    } else if seeds.count == 1 {
        print(
            "seed \(seed): \(result.rows) rows, \(result.processes) processes, "
                + "\(result.steps) steps, trace \(String(result.traceHash, radix: 16))")
    }
}
print("\(seeds.count - failures.count) passed, \(failures.count) failed")
if !failures.isEmpty {
    print("failing seeds: \(failures.map(String.init).joined(separator: " "))")
    exitWith(1)
}
