import BroadsideRows
import BroadsideSupport
import Testing

/// The rule of arms: its text, and the arm of a token. Positions are from Python's hashlib.
@Suite struct ArmSplitTests {
    private func split(_ text: String, salt: String = "spring") throws -> ArmSplit {
        try ArmSplit(text, salt: salt)
    }

    private func position(_ token: String, salt: String) throws -> UInt16 {
        ArmChooser(try split("a=100", salt: salt)).position(of: Array(token.utf8).rawSpan)
    }

    @Test func `A token has the position that other programs compute`() throws {
        let pairs = String(repeating: "ab", count: 32)
        #expect(try position(String(repeating: "00", count: 32), salt: "spring") == 6237)
        #expect(try position(pairs, salt: "spring") == 7916)
        #expect(try position(pairs.uppercased(), salt: "spring") == 7916)
        #expect(try position(String(repeating: "ff", count: 32), salt: "spring") == 7760)
        #expect(try position(pairs, salt: "autumn") == 9467)
        let all = String(repeating: "0123456789abcdef", count: 4)
        #expect(try position(all, salt: "spring") == 9653)
        #expect(try position(all.uppercased(), salt: "spring") == 9653)
        #expect(try position("ab", salt: String(repeating: "x", count: 70)) == 8670)
    }

    @Test func `A salt has 1 to 200 bytes`() {
        #expect(!ArmSplit.isSalt("") && ArmSplit.isSalt("x"))
        #expect(ArmSplit.isSalt(String(repeating: "x", count: 200)))
        #expect(!ArmSplit.isSalt(String(repeating: "x", count: 201)))
        #expect(!ArmSplit.isSalt(String(repeating: "é", count: 101)))
    }

    @Test func `Arms take consecutive positions in their order`() throws {
        let token = Array(String(repeating: "ab", count: 32).utf8)
        for (text, name) in [
            ("a=79.16,b=20.84", "b"), ("a=79.17,b=20.83", "a"), ("b=20.83,a=79.17", "a"),
            ("holdout=79.17,a=20.83", "holdout"), ("a=10", "holdout"), ("a=50,b=30,c=20", "b"),
        ] {
            let split = try split(text)
            let number = ArmChooser(split).arm(of: token.rawSpan)
            #expect(split.names[Int(number) - 1] == name, "\(text)")
        }
    }

    @Test func `The rest up to 100 percent is the holdout`() throws {
        let split = try split("a=45,b=44.5")
        #expect(split.text == "a=45,b=44.5,holdout=10.5")
        #expect(split.holdout == 3)
        #expect(split.number(of: "b") == 2)
        #expect(try self.split("a=100").holdout == nil)
        #expect(try self.split("a=0.05,b=99.95").text == "a=0.05,b=99.95")
    }

    @Test(arguments: [
        ("a=45,b", "'b' is not ARM=PERCENT"), ("a=45,", "'' is not ARM=PERCENT"),
        ("A=45", "'A=45' is not ARM=PERCENT"), ("a=4.555", "'a=4.555' is not ARM=PERCENT"),
        ("a=-1", "'a=-1' is not ARM=PERCENT"), ("a=0", "'a=0' must be above 0"),
        ("a=101", "'a=101' must be above 0 and at most 100"), ("a=1e1", "is not ARM=PERCENT"),
        ("a=60,b=50", "adds up to 110 percent: the sum must be at most 100"),
        ("a=60,holdout=30", "adds up to 90 percent: if holdout is named, the sum must be 100"),
        ("a=10,a=20", "has arm a twice"), ("holdout=100", "sends to no device"),
        (String(repeating: "x", count: 33) + "=5", "is not ARM=PERCENT"),
        ((1...15).map { "a\($0)=1" }.joined(separator: ","), "has 16 arms including the holdout"),
    ])
    func `A text that is no split is refused with what is wrong`(_ text: String, _ words: String) {
        #expect {
            try split(text)
        } throws: { error in
            (error as? ArmSplit.Problem)?.message.contains(words) == true
        }
    }
}
