import Broadside
import Support

/// `broadside feedback`.
enum FeedbackCommand {
    static let description: CommandDescription = CommandDescription(
        name: "feedback",
        summary: "read a legacy feedback service into a ledger that prune takes",
        usage: "--endpoint HOST[:PORT] --certificate FILE --ledger DIR [OPTIONS]",
        discussion: """
            Reads the list of tokens whose app is gone, to its end, and records each as Unregistered
            with the service's own time; broadside prune --ledger DIR then uses it. Reading clears
            the list at the service, so what arrived is synced to disk as it comes: where the
            connection breaks, all whole tuples before are in the ledger.

            Exit codes: 0 read to the end; 1 the service can't be reached, or the list is torn; 2
            the request is wrong; 5 a disk error.
            """,
        sections: groups.map(\.section),
        examples: [
            .init(
                "Read which devices are gone; prune then takes them out",
                #"""
                broadside feedback --endpoint 127.0.0.1:2196 \
                    --ca-file relay/ca.pem --certificate relay/client.pem \
                    --private-key relay/client.key --ledger gone
                """#)
        ],
        run: { (arguments) throws(BroadsideError) in
            try arguments.refuseWords(of: description)
            try arguments.require([
                RequiredOption("endpoint", "HOST[:PORT]"), RequiredOption("certificate", "FILE"),
                .ledger,
            ])
            var options = SendOptions()
            options.wireProtocol = .binary
            for group in groups { try group.read(arguments, into: &options) }
            return try FeedbackRun.run(options)
        })

    private static let groups = [
        OptionGroup<SendOptions>(
            title: "Where from",
            options: [
                .text(
                    "endpoint", "HOST[:PORT]", \.endpoint, "the service (default port: 2196)"),
                .file("ca-file", \.caFile, "certificates to trust there (default: the system's)"),
                .file(
                    "certificate", \.certificate,
                    "client certificate: PEM, with or without its key, or PKCS#12"),
                .file("private-key", \.privateKey, "the certificate's key, PEM"),
                .file(
                    "passphrase-file", \.passphraseFile,
                    "the first line opens a protected key or PKCS#12"),
            ]),
        OptionGroup<SendOptions>(
            title: "Results",
            options: [
                .file(
                    "ledger", \.ledger, use: .ledger, placeholder: "DIR",
                    "where the tokens go; must not exist")
            ]),
    ]
}
