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

/// Tests may use unsafe constructs freely: they take the place of a careless caller.
let testSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: testSettings)
}

let package = Package(
    name: "broadside",
    products: [
        .executable(name: "broadside", targets: ["BroadsideCLI"]),
        .library(name: "Broadside", targets: ["Broadside"]),
        .library(name: "Simulator", targets: ["Simulator"]),
    ],
    targets: [
        // Debian's -dev packages; `tools/install-packages` names them.
        .systemLibrary(name: "CLiburing"),
        .systemLibrary(name: "COpenSSL"),
        .systemLibrary(name: "CGnuTLS"),
        .systemLibrary(name: "CNghttp2"),
        .systemLibrary(name: "CMicrohttpd"),
        .systemLibrary(name: "CZlib"),
        .systemLibrary(name: "CDeflate"),
        .systemLibrary(name: "CZstd"),

        // What all may use: errors, time, files, text, threads.
        module("Support"),

        // Pure: bytes and the time come in as parameters.
        module("APNs"),
        module("HPACK"),
        module("HTTP2", ["HPACK", "CNghttp2"]),
        module("Campaign", ["APNs", "Support", "CDeflate", "CZlib", "CZstd"]),

        // The two that touch the system.
        module("TLS", ["COpenSSL", "CGnuTLS"]),
        module("Ring", ["CLiburing"]),

        // A token list as a stream of chunks.
        module("Lists", ["Campaign", "APNs", "TLS", "Support"]),

        // Ledgers as directories: claimed, read, exported, merged, repaired.
        module("Ledgers", ["Lists", "Campaign", "APNs", "TLS", "Support"]),

        // Reactors and what they need of the system.
        module(
            "Engine",
            ["Lists", "Campaign", "APNs", "HTTP2", "HPACK", "TLS", "Ring", "Support"]),

        // What is told of a run: live, to scrapers, in the log, as a summary and as a page.
        module(
            "Observability",
            [
                "Ledgers", "Engine", "Lists", "Campaign", "APNs", "Ring", "Support",
                "CMicrohttpd",
            ]),

        // The library that joins them, a local APNs, and the command.
        module(
            "Broadside",
            [
                "Observability", "Engine", "Ledgers", "Lists", "Support", "APNs", "HPACK", "HTTP2",
                "Campaign", "TLS", "Ring",
            ]),
        module("Simulator", ["APNs", "HPACK", "TLS", "Ring", "Support", "CNghttp2"]),
        .executableTarget(
            name: "BroadsideCLI",
            dependencies: ["Broadside", "Simulator", "Support", "APNs", "TLS"],
            swiftSettings: settings),

        // The deterministic simulation, which drives whole reactors, and the command that runs its seeds.
        .target(
            name: "DeterministicSimulation",
            dependencies: [
                "Broadside", "Engine", "Lists", "Support", "APNs", "HPACK", "HTTP2", "Campaign",
                "Ring", "CNghttp2",
            ],
            path: "Tests/DeterministicSimulation",
            swiftSettings: testSettings),
        .executableTarget(
            name: "seeds",
            dependencies: ["DeterministicSimulation"],
            path: "Tests/Seeds",
            swiftSettings: testSettings),

        // Parts of a notification's way alone, for `Benchmarks/run`.
        .executableTarget(
            name: "parts",
            dependencies: ["Engine", "Support", "APNs", "HPACK", "HTTP2", "Campaign"],
            path: "Benchmarks/Parts",
            swiftSettings: testSettings),

        // What reads bytes from elsewhere, as libFuzzer feeds it (`tools/fuzz`), and its corpora.
        .target(
            name: "FuzzTargets",
            dependencies: ["Observability", "APNs", "Campaign", "HTTP2", "TLS", "CZlib"],
            path: "Tests/Fuzz/Targets",
            swiftSettings: testSettings),
        .executableTarget(
            name: "fuzz",
            dependencies: ["FuzzTargets"],
            path: "Tests/Fuzz/Driver",
            swiftSettings: testSettings),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets"],
            path: "Tests/Fuzz/Tests",
            swiftSettings: testSettings),

        tests("SupportTests", ["Support", "TestSupport"]),
        tests("APNsTests", ["APNs"]),
        tests("HPACKTests", ["HPACK", "CNghttp2"]),
        tests("HTTP2Tests", ["HTTP2", "HPACK", "CNghttp2"]),
        tests("CampaignTests", ["Campaign", "Support", "APNs"]),
        tests("ListsTests", ["Lists", "Campaign", "APNs", "Support", "TestSupport"]),
        tests(
            "LedgersTests", ["Ledgers", "Lists", "Campaign", "APNs", "Support", "TestSupport"]),
        tests(
            "EngineTests",
            [
                "Engine", "Lists", "Campaign", "APNs", "HTTP2", "HPACK", "TLS", "Ring", "Support",
                // For the words that a run ends with.
                "Observability",
            ]),
        tests("TLSTests", ["TLS"]),
        tests("RingTests", ["Ring"]),
        tests(
            "BroadsideTests",
            [
                "Broadside", "Observability", "Engine", "Ledgers", "Lists", "Support", "Campaign",
                "HTTP2", "HPACK", "TLS", "APNs", "Ring", "CNghttp2", "TestSupport",
            ]),
        tests(
            "ObservabilityTests",
            [
                "Observability", "Ledgers", "Engine", "Lists", "Campaign", "APNs", "Ring",
                "Support", "TestSupport",
            ]),
        tests("SimulatorTests", ["Simulator", "Engine", "APNs", "HPACK", "TLS", "Support"]),
        tests("SimulationTests", ["DeterministicSimulation"]),
        // As a program of anyone's uses the two libraries.
        tests("LibraryTests", ["Broadside", "Simulator"]),

        // These drive the real command, against servers that nobody here wrote.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: testSettings),
        tests("InteropTests", ["TestSupport"]),
        tests("CrashTests", ["TestSupport"]),
        tests("CommandTests", ["TestSupport", "Campaign"]),
        tests("AllocationTests", ["TestSupport"]),
    ]
)
