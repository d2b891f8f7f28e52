// swift-tools-version: 6.2
import PackageDescription

/// A server's package, which uses the library as any other package does. Its targets have names that
/// a server may have, and that the library's folders have, too.
let package = Package(
    name: "service",
    dependencies: [.package(name: "broadside", path: "../..")],
    targets: [
        .target(name: "Support"),
        .executableTarget(
            name: "service",
            dependencies: [
                "Support",
                .product(name: "Broadside", package: "broadside"),
                .product(name: "Simulator", package: "broadside"),
            ]),
    ]
)
