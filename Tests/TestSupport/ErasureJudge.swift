extension Campaign {
    /// Judges an erasure by code that is not ours, `Tests/Judge/forgotten_devices.py`: compares a
    /// ledger with what it was, and searches all its bytes for the devices. The output has the
    /// numbers of changed records.
    package func judgeErasure(
        of devices: String, in ledger: String, before: String, _ more: [String] = []
    ) throws -> Finished {
        try Subprocess(
            "python3",
            [Tool.packageRoot + "/Tests/Judge/forgotten_devices.py", before, ledger, devices]
                + more, in: directory
        ).wait(limit: 60)
    }

    /// Searches all bytes of the campaign's ledger for devices, in all forms.
    package func judgeAbsence(of devices: String) throws -> Finished {
        try judgeErasure(of: devices, in: ledger, before: ledger, ["--absent"])
    }
}
