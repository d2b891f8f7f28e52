import Foundation

extension TestAuthority {
    /// A provider token, made with the openssl command. Its signature is in DER, which the
    /// simulator and APNs take as well.
    ///
    /// - Parameter issueTime: `iat` as JSON; nil: `issuedAt`.
    package func providerToken(
        issuedAt: Int? = nil, issueTime: String? = nil, keyID: String = Campaign.keyID,
        teamID: String = Campaign.teamID,
        key: String? = nil, in directory: TemporaryDirectory
    ) throws -> String {
        func encoded(_ data: Data) -> String {
            data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        let issueTime = issueTime ?? "\(issuedAt ?? Int(Date().timeIntervalSince1970))"
        let input =
            encoded(Data(#"{"alg":"ES256","kid":"\#(keyID)"}"#.utf8)) + "."
            + encoded(Data(#"{"iss":"\#(teamID)","iat":\#(issueTime)}"#.utf8))
        let file = try directory.write(input, to: "signing-input")
        let signature = "\(directory.path)/signature"
        try Subprocess.run(
            "openssl", ["dgst", "-sha256", "-sign", key ?? authKey, "-out", signature, file],
            in: directory)
        return input + "." + encoded(try Data(contentsOf: URL(filePath: signature)))
    }
}
