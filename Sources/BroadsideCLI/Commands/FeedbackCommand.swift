import BroadsideCampaigns
import BroadsideSupport

/// `broadside feedback`: reads a legacy feedback service into a ledger.
enum FeedbackCommand: Command {
    static let name = "feedback"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "read a legacy feedback service into a ledger that prune reads",
        usage: "--endpoint HOST[:PORT] --certificate FILE --ledger DIR [OPTIONS]",
        discussion: """
            Reads the whole list of tokens whose app was removed, and records each token as Unregistered
            with the service's timestamp. Then broadside prune --ledger DIR can remove these tokens from
            a list. The service clears its list while the list is read, so each tuple is synced to disk
            as it arrives. If the connection breaks, all complete tuples are in the ledger.

            Exit codes: 0 read to the end; 1 the service can't be reached, or the list is incomplete; 2
            the request is wrong; 5 a disk error.
            """,
        sections: groups.map(\.section),
        examples: [
            .init(
                "Read which tokens are dead; prune then removes them",
                #"""
                broadside feedback --endpoint 127.0.0.1:2196 \
                    --ca-file relay/ca.pem --certificate relay/client.pem \
                    --private-key relay/client.key --ledger gone
                """#)
        ],
        run: { (arguments) throws(BroadsideError) in
            try arguments.rejectWords(of: description)
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
            title: "Service",
            options: [
                .text(
                    "endpoint", "HOST[:PORT]", \.endpoint, "the service (default port: 2196)"),
                .file("ca-file", \.caFile, "certificates to trust (default: the system's)"),
                .file(
                    "certificate", \.certificate,
                    "client certificate: PEM, with or without its key, DER (.cer) or PKCS#12"),
                .file("private-key", \.privateKey, "the certificate's key, PEM"),
                .file(
                    "passphrase-file", \.passphraseFile,
                    "file whose first line is the passphrase of the key or PKCS#12 file"),
            ]),
        OptionGroup<SendOptions>(
            title: "Results",
            options: [
                .file(
                    "ledger", \.ledger, use: .ledger, placeholder: "DIR",
                    "new ledger for the tokens; must not exist")
            ]),
    ]
}
