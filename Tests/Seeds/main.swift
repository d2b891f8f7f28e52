import Glibc
import DeterministicSimulation

/// Runs seeds of the deterministic simulation.
///
///     seeds 0..<500                   run seeds; the last line has counts; status 1 if one fails
///     seeds --seed 42 --trace         run one seed and print its trace
///     seeds 0..<500 --senders         with several senders of the campaign at the same time
///     seeds 0..<500 --waves           with rows that are sent at their local time
///     seeds 0..<500 --coverage FILE   write counts of faults to FILE; FILE `-`: print a table
///     seeds 0..<500 --keep DIRECTORY  write a file per failing seed, with the end of its trace
///     seeds --sum FILE...             print one table of the counts in these files
let usage = """
    usage: seeds FIRST..<END [--senders] [--waves] [--coverage FILE] [--keep DIRECTORY]
           | seeds --seed N [--senders] [--waves] [--trace]
           | seeds --sum FILE... [--least N]
    """

func parseRange(_ text: String) -> Range<UInt64>? {
    let parts = text.split(separator: "..<")
    guard parts.count == 2, let first = UInt64(parts[0]), let end = UInt64(parts[1]), first < end
    else { return nil }
    return first..<end
}

var seeds: [UInt64] = []
var isTelling = false
var hasSenders = false
var hasWaves = false
var coverageFile: String?
var directory: String?
var summands: [String]?
var least = 1
var arguments = Array(CommandLine.arguments.dropFirst())
while !arguments.isEmpty {
    let argument = arguments.removeFirst()
    if argument == "--trace" {
        isTelling = true
    } else if argument == "--senders" {
        hasSenders = true
    } else if argument == "--waves" {
        hasWaves = true
    } else if argument == "--seed", let seed = arguments.first.flatMap({ UInt64($0) }) {
        arguments.removeFirst()
        seeds.append(seed)
    } else if argument == "--least", let number = arguments.first.flatMap({ Int($0) }) {
        arguments.removeFirst()
        least = number
    } else if argument == "--coverage", !arguments.isEmpty {
        coverageFile = arguments.removeFirst()
    } else if argument == "--keep", !arguments.isEmpty {
        directory = arguments.removeFirst()
    } else if argument == "--sum", summands == nil {
        summands = []
    } else if let range = parseRange(argument) {
        seeds += range
    } else if summands != nil, !argument.hasPrefix("-") {
        summands?.append(argument)
    } else {
        print(usage)
        exitWith(2)
    }
}

if let summands {
    var sum = Coverage()
    for file in summands {
        guard let text = readText(file), let coverage = Coverage(text: text) else {
            print("seeds: \(file) holds no counts of this version")
            exitWith(2)
        }
        sum.add(coverage)
    }
    print(sum.table(least: least))
    exitWith(0)
}

var failures: [UInt64] = []
var coverage = Coverage()
var (overlapping, stale) = (0, 0)
var waves = WaveCounts()
var waveSeeds = 0
nameSeedsThatTrap()
giveMemoryBack()
var leftBehind = LeftBehind()
for seed in seeds {
    runningSeed = seed
    leftBehind.noteSimulation()
    let result = runSeed(
        seed, telling: isTelling ? .everything : .nothing, hasSenders: hasSenders,
        hasWaves: hasWaves)
    if let counts = result.waves {
        waveSeeds += 1
        waves.add(counts)
    }
    if result.overlaps > 0 { overlapping += 1 }
    if result.staleStarts > 0 { stale += 1 }
    coverage.add(result.coverage)
    if let failure = result.failure {
        failures.append(seed)
        print("seed \(seed): \(failure)")
        print(
            "    to see it: \(CommandLine.arguments[0]) --seed \(seed)\(hasSenders ? " --senders" : "")"
                + "\(hasWaves ? " --waves" : "") --trace")
        if let directory {
            let story = runSeed(
                seed, telling: .last(400), hasSenders: hasSenders, hasWaves: hasWaves
            ).lastLines.joined(separator: "\n")
            writeText("seed \(seed): \(failure)\n\n\(story)\n", "\(directory)/seed-\(seed).txt")
        }
    } else if seeds.count == 1 {
        print(
            "seed \(seed): \(result.rows) rows, \(result.processes) processes, "
                + "\(result.steps) steps, trace \(String(result.traceHash, radix: 16))")
    }
}
print("\(seeds.count - failures.count) passed, \(failures.count) failed")
if hasSenders {
    print("\(overlapping) seeds had senders at the same time, \(stale) a start from an old copy")
}
if waveSeeds > 0 { print("\(waveSeeds) seeds had waves: \(waves.text)") }
if !failures.isEmpty {
    print("failing seeds: \(failures.map(String.init).joined(separator: " "))")
}
if let excess = leftBehind.excess {
    print("each simulation leaves \(excess) bytes behind")
}
if coverageFile == "-" {
    print(coverage.table(least: least))
} else if let coverageFile {
    writeText(coverage.text, coverageFile)
}
if !failures.isEmpty || leftBehind.excess != nil { exitWith(1) }
