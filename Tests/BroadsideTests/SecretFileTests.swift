import Testing

@testable import BroadsideCampaigns

/// The files of secrets.
@Suite struct SecretFileTests {
    @Test(
        arguments: [
            // Own files: only their user should read them.
            (0o400, 1000, 1000, false), (0o600, 1000, 2000, false), (0o640, 1000, 1000, true),
            (0o440, 1000, 2000, true), (0o604, 1000, 1000, true),
            // Files of root, given through a group of this process, as Kubernetes does.
            (0o440, 0, 2000, false), (0o640, 0, 1000, false), (0o444, 0, 2000, true),
            // The group is another's.
            (0o440, 0, 3000, true), (0o400, 0, 3000, false),
        ] as [(UInt32, UInt32, UInt32, Bool)])
    func `A secret may be readable for a group if another user gave it to this process's group`(
        mode: UInt32, owner: UInt32, group: UInt32, isOpen: Bool
    ) {
        #expect(
            isReadableByOthers(
                mode: mode, owner: owner, group: group, user: 1000, groups: [2000, 1000]) == isOpen)
    }
}
