// swift-tools-version: 6.2
import PackageDescription

/// What every module of ours is compiled with; a warning never lands.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
]

/// Tests and their programs may use unsafe constructs freely: they take the place of a careless caller.
let programSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
]

/// `tools/checked-build` optimizes what is tested, not the tests: optimizing the tests takes minutes. Nothing imports
/// the modules of tests, so the compiler does not write them ahead of the code. The package manager looks for tests in
/// the index, but not for those of the system.
let testSettings =
    programSettings + [
        .unsafeFlags(
            ["-Onone", "-no-emit-module-separately-wmo", "-index-ignore-system-modules"],
            .when(configuration: .release))
    ]

/// The layers that work once for a command instead of once for a row. Optimizing them takes two minutes, more than the
/// tests that run them, so `tools/checked-build` leaves it to releases. Only it sets this variable: a package that
/// depends on this one can't have unsafe flags.
let isChecked = Context.environment["BROADSIDE_CHECKED_BUILD"] != nil
let commandSettings = isChecked ? settings + [.unsafeFlags(["-Onone"])] : settings
let commandLayers: Set<String> = ["Broadside", "Observability"]
/// As in an installed release, Swift's libraries are in the command's file. The tests start it thousands of times, and
/// half of a start's processor time is that of the loader.
let commandLinking: [LinkerSetting] =
    isChecked ? [.unsafeFlags(["-static-stdlib", "-Xclang-linker", "-no-pie"])] : []

/// The target of a folder: the names of targets are unique in a graph of packages, so each begins with this one's.
func target(_ folder: String) -> String {
    if let name = names[folder] { return name }
    if folder.hasPrefix("Broadside") || others.contains(folder) { return folder }
    let isOfC = folder.hasPrefix("C") && folder.dropFirst().first!.isUppercase
    return isOfC ? "CBroadside\(folder.dropFirst())" : "Broadside\(folder)"
}

/// Targets with a name of their own: the library, and what it and the command have in common.
let names = ["Library": "Broadside", "Broadside": "BroadsideCampaigns"]

/// Targets that no product has.
let others: Set<String> = ["DeterministicSimulation", "FuzzTargets"]

func targets(_ folders: [String]) -> [Target.Dependency] {
    folders.map { .byName(name: target($0)) }
}

func library(_ folder: String) -> Target {
    .systemLibrary(name: target(folder), path: "Sources/\(folder)")
}

func module(_ folder: String, _ uses: [String] = []) -> Target {
    .target(
        name: target(folder), dependencies: targets(uses), path: "Sources/\(folder)",
        swiftSettings: commandLayers.contains(folder) ? commandSettings : settings)
}

func tests(_ name: String, _ uses: [String]) -> Target {
    .testTarget(name: name, dependencies: targets(uses), swiftSettings: testSettings)
}

let package = Package(
    name: "broadside",
    products: [
        .executable(name: "broadside", targets: ["BroadsideCLI"]),
        .library(name: "Broadside", targets: ["Broadside"]),
        .library(name: "Simulator", targets: [target("Simulator")]),
        .library(name: "SimulatorTesting", targets: [target("SimulatorTesting")]),
    ],
    targets: [
        // Debian's -dev packages; `tools/install-packages` names them.
        library("CLiburing"),
        library("COpenSSL"),
        library("CGnuTLS"),
        library("CNghttp2"),
        library("CMicrohttpd"),
        library("CZlib"),
        library("CDeflate"),
        library("CZstd"),

        // What all may use: errors, time, files, text, threads.
        module("Support"),

        // Pure: bytes and the time come in as parameters.
        module("Primitives"),
        module("APNs", ["Primitives"]),
        module(
            "LegacyGateway",
            [
                "APNs"
            ]),
        module("HPACK"),
        module("HTTP2", ["HPACK", "CNghttp2"]),

        // Pure, too, but for their memory: what a campaign is made of.
        module("Rows", ["APNs", "Primitives", "Support", "CZlib", "CZstd"]),
        module("Payloads", ["Rows", "APNs", "Primitives", "Support"]),
        module("Policy", ["APNs", "Primitives", "Support"]),
        module("LedgerFormat", ["Policy", "Rows", "APNs", "Primitives", "Support", "CDeflate"]),
        module("Hygiene", ["LedgerFormat", "Rows", "APNs", "Primitives", "Support"]),

        // The two that touch the system.
        module("TLS", ["COpenSSL", "CGnuTLS"]),
        module("Ring", ["CLiburing"]),

        // An HTTP endpoint of a process: metrics, and commands for the local APNs.
        module("LocalHTTP", ["Ring", "Support", "CMicrohttpd"]),

        // A token list as a stream of chunks.
        module(
            "Lists",
            [
                "LedgerFormat", "Payloads", "Rows", "APNs", "Primitives", "TLS", "Support",
                "Hygiene",
            ]),

        // Ledgers as directories: claimed, read, exported, merged, repaired.
        module(
            "Ledgers",
            [
                "Lists", "LedgerFormat", "Rows", "APNs", "Primitives", "TLS", "Support",
            ]),

        // Reactors and what they need of the system.
        module(
            "Engine",
            [
                "Lists", "LedgerFormat", "Policy", "Payloads", "Rows", "LegacyGateway", "APNs",
                "HTTP2", "HPACK", "TLS", "Ring", "Support",
            ]),

        // What is told of a run: live, to scrapers, in the log, as a summary and as a page.
        module(
            "Observability",
            [
                "Ledgers", "Engine", "Lists", "LedgerFormat", "Policy", "Payloads", "Rows", "APNs",
                "Primitives", "Ring", "Support", "LocalHTTP",
            ]),

        // What joins them, the library for servers, a local APNs, and the command.
        module(
            "Broadside",
            [
                "Observability", "Engine", "Ledgers", "Lists", "Support", "APNs", "Primitives",
                "HPACK", "HTTP2", "Hygiene", "LedgerFormat", "Policy", "Payloads", "Rows",
                "LegacyGateway", "TLS", "Ring",
            ]),
        // Alone in using Foundation, which the command does not link.
        module(
            "Library",
            [
                "Broadside", "Observability", "Engine", "Ledgers", "LedgerFormat", "Rows", "APNs",
                "Primitives", "HTTP2", "HPACK", "TLS", "Ring", "Support",
            ]),
        module(
            "Simulator",
            [
                "APNs", "Primitives", "LegacyGateway", "HPACK", "TLS", "Ring", "LocalHTTP",
                "Support", "CNghttp2",
            ]),
        // The local APNs as a trait of Swift Testing.
        module("SimulatorTesting", ["Simulator", "Library"]),
        .executableTarget(
            name: "BroadsideCLI",
            dependencies: targets([
                "Broadside", "Simulator", "LedgerFormat", "LegacyGateway", "APNs", "TLS",
                "Primitives", "Support",
            ]),
            swiftSettings: commandSettings, linkerSettings: commandLinking),

        // The deterministic simulation, which drives whole reactors, and the command that runs its seeds.
        .target(
            name: "DeterministicSimulation",
            dependencies: targets([
                "Library", "Broadside", "Observability", "Engine", "Lists", "Support", "APNs",
                "HPACK", "Hygiene", "LedgerFormat", "Policy", "Payloads", "Rows",
                "LegacyGateway", "Ring", "CNghttp2",
            ]),
            path: "Tests/DeterministicSimulation",
            swiftSettings: programSettings),
        .executableTarget(
            name: "seeds",
            dependencies: targets(["DeterministicSimulation"]),
            path: "Tests/Seeds",
            swiftSettings: programSettings),

        // Parts of a notification's way alone, for `Benchmarks/run`.
        .executableTarget(
            name: "parts",
            dependencies: targets([
                "Engine", "APNs", "HPACK", "HTTP2", "LedgerFormat", "Policy", "Rows",
            ]),
            path: "Benchmarks/Parts",
            swiftSettings: programSettings),

        // What reads bytes from elsewhere, as libFuzzer feeds it (`tools/fuzz`), and its corpora.
        .target(
            name: "FuzzTargets",
            dependencies: targets([
                "Observability", "APNs", "Primitives", "Hygiene", "LedgerFormat", "Payloads",
                "Rows", "LegacyGateway", "HTTP2", "TLS", "CZlib", "Support",
            ]),
            path: "Tests/Fuzz/Targets",
            swiftSettings: programSettings),
        .executableTarget(
            name: "fuzz",
            dependencies: targets(["FuzzTargets"]),
            path: "Tests/Fuzz/Driver",
            swiftSettings: programSettings),
        .testTarget(
            name: "FuzzTests",
            dependencies: targets(["FuzzTargets"]),
            path: "Tests/Fuzz/Tests",
            swiftSettings: testSettings),

        tests("SupportTests", ["Support", "TestSupport"]),
        tests("PrimitivesTests", ["Primitives", "APNs", "TestSupport"]),
        tests("APNsTests", ["APNs", "Primitives", "Support"]),
        tests("LegacyGatewayTests", ["LegacyGateway", "APNs"]),
        tests("HPACKTests", ["HPACK", "CNghttp2"]),
        tests("HTTP2Tests", ["HTTP2", "HPACK", "CNghttp2"]),
        tests(
            "RowsTests",
            [
                "Rows", "Primitives", "Support", "TestSupport", "Hygiene", "LedgerFormat",
            ]),
        tests(
            "PayloadsTests", ["Payloads", "Rows", "APNs", "Primitives", "Support", "TestSupport"]),
        tests(
            "PolicyTests",
            [
                "Policy", "APNs", "Support", "TestSupport",
            ]),
        // And of Hygiene, which reads ledgers.
        tests(
            "LedgerFormatTests",
            [
                "Hygiene", "LedgerFormat", "Policy", "Rows", "APNs", "Support", "TestSupport",
            ]),
        tests(
            "ListsTests",
            [
                "Lists", "Hygiene", "LedgerFormat", "Rows", "Support", "TestSupport",
            ]),
        tests(
            "LedgersTests",
            [
                "Ledgers", "Lists", "Hygiene", "LedgerFormat", "Payloads", "Rows", "APNs",
                "Support", "TestSupport",
            ]),
        tests(
            "EngineTests",
            [
                "Engine", "Lists", "Hygiene", "LedgerFormat", "Policy", "Payloads", "Rows",
                "LegacyGateway", "APNs", "HTTP2", "HPACK", "TLS", "Ring", "Support",
                "Observability",
            ]),
        tests("TLSTests", ["TLS"]),
        tests("RingTests", ["Ring"]),
        tests(
            "BroadsideTests",
            [
                "Library", "Broadside", "Observability", "Engine", "Ledgers", "Lists", "Support",
                "Hygiene", "LedgerFormat", "Policy", "Payloads", "Rows", "LegacyGateway", "HTTP2",
                "HPACK", "TLS", "APNs", "Ring", "CNghttp2", "Simulator", "TestSupport",
            ]),
        tests(
            "ObservabilityTests",
            [
                "Observability", "Ledgers", "Engine", "Lists", "LedgerFormat", "Policy", "Rows",
                "APNs", "Ring", "LocalHTTP", "Support", "TestSupport",
            ]),
        tests(
            "SimulatorTests",
            [
                "Simulator", "APNs", "Primitives", "LegacyGateway", "HPACK", "TLS", "Support",
            ]),
        tests(
            "SimulationTests",
            [
                "DeterministicSimulation", "Support",
            ]),
        // As a program of anyone's uses the libraries; the service is also a package of its own.
        tests("LibraryTests", ["Library", "Simulator", "SimulatorTesting", "TestSupport"]),
        .executableTarget(
            name: target("Service"), dependencies: targets(["Library", "Simulator"]),
            path: "Tests/Service/Sources/service", swiftSettings: programSettings),

        // These drive the real command, against servers that nobody here wrote.
        .target(
            name: target("TestSupport"), path: "Tests/TestSupport", swiftSettings: programSettings),
        tests("InteropTests", ["TestSupport"]),
        tests("CrashTests", ["TestSupport"]),
        tests(
            "CommandTests",
            [
                "TestSupport", "LedgerFormat", "Policy",
            ]),
        tests("AllocationTests", ["TestSupport"]),
    ]
)
