import Testing

@testable import BroadsideCampaigns

/// What doctor finds out about this machine's limits.
@Suite struct DoctorMachineTests {
    @Test(
        arguments: [
            (36, .failed, false, "36 allowed, even one connection needs 37"),
            (37, .warning, true, "37 allowed, 64 connections need 104"),
            (103, .warning, true, "103 allowed, 64 connections need 104"),
            (104, .ok, true, "104 allowed, 64 connections need 104"),
        ] as [(UInt64, DoctorReport.State, Bool, String)])
    func `Too few open files for one connection are a failure, and for many a warning`(
        _ allowed: UInt64, _ state: DoctorReport.State, _ canRun: Bool, _ detail: String
    ) throws {
        var report = DoctorReport(endpoint: "127.0.0.1:1")
        #expect(DoctorMachine.examineOpenFiles(&report, allowed: allowed) == canRun)
        let check = try #require(report.checks.first)
        #expect(check.state == state && check.detail == detail, "\(check)")
        #expect((check.advice?.contains("ulimit -n 104") ?? false) == (state != .ok))
    }

    @Test(
        arguments: [
            (nil, .ok, "unlimited"), (640 << 20, .ok, "640.0 MiB of address space allowed"),
            ((640 << 20) - 1, .failed, "a run with one reactor needs 640.0 MiB"),
        ] as [(UInt64?, DoctorReport.State, String)])
    func `Too little address space for one reactor is a failure`(
        _ allowed: UInt64?, _ state: DoctorReport.State, _ detail: String
    ) throws {
        var report = DoctorReport(endpoint: "127.0.0.1:1")
        #expect(DoctorMachine.examineMemory(&report, allowed: allowed) == (state == .ok))
        let check = try #require(report.checks.first)
        #expect(check.state == state && check.detail.contains(detail), "\(check)")
        #expect((check.advice?.contains("ulimit -v 655360") ?? false) == (state != .ok))
    }
}
