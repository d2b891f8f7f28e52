import BroadsideAPNs
import BroadsidePolicy
import Foundation
import Testing

@testable import BroadsideObservability

/// The command line that a ledger keeps.
@Suite struct RunCommandTests {
    private static let url = "https://bot:sesame@example.com/x"

    private static func command(_ words: [String]) -> RunCommand {
        RunCommand(
            program: "broadside", arguments: ["send", "--ledger", "l"] + words + ["--rate", "5"],
            directory: RunCommand.workingDirectory)
    }

    @Test(arguments: [["--hook", "curl -s '\(url)'"], ["--hook=curl -s '\(url)'"]])
    func `An option with a secret is left out, and advice says to add it`(words: [String]) throws {
        let command = Self.command(words)
        #expect(command.arguments == ["send", "--ledger", "l", "--rate", "5"])
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "l", command: command)
        let added = " (add --hook yourself: values with secrets are not shown)"
        #expect(
            StopAdvice(.signal, circumstances).lastLine
                == "--resume continues\(added): broadside send --ledger l --rate 5 --resume")
        // Commands that don't accept the option need no such text.
        let refused = StopCause.Refusal(
            status: 403, reason: .invalidProviderToken, isCredential: true)
        let advice = StopAdvice(.refused(refused), circumstances)
        #expect(advice.steps[0].command == "broadside doctor")
        #expect(!advice.steps[0].text.contains("yourself"), "\(advice.steps)")
        // A ledger keeps neither the secret nor the option.
        let kept = try JSONEncoder().encode(command)
        #expect(!String(decoding: kept, as: UTF8.self).contains("bot"))
        circumstances.command = try JSONDecoder().decode(RunCommand.self, from: kept)
        #expect(circumstances.command == command)
        #expect(StopAdvice(.signal, circumstances).lastLine?.contains(added) == true)
    }

    @Test func `A command that needs several options that are left out names each once`() {
        let command = Self.command([
            "--auth-key-command", "curl \(Self.url)", "--label", "a=\(Self.url)",
            "--label=b=\(Self.url)", "--auth-key-command", "curl \(Self.url)",
        ])
        #expect(
            command.withheldText
                == "add --auth-key-command and --label yourself: values with secrets are not shown")
        #expect(command.doctor.withheld == ["auth-key-command"])
        #expect(command.without("label").withheld == ["auth-key-command"])
        #expect(command.tokensCheck == nil && command.calling(["status"]).withheldText == nil)
    }

    @Test func `Without secrets, no option is left out`() {
        for hook in ["curl https://bot:$PASSWORD@example.com", "sh tell.sh", "https://a:80/b@c"] {
            let command = Self.command(["--hook", hook])
            #expect(command.value("hook") == hook && command.withheldText == nil)
        }
    }

    @Test func `What version 1.0.0-beta.1 kept has no secret once it is read`() throws {
        let kept = """
            {"program":"broadside","arguments":["send","--hook","curl \(Self.url)","--rate","5"],
             "directory":"/"}
            """
        let command = try JSONDecoder().decode(RunCommand.self, from: Data(kept.utf8))
        #expect(command.text(at: "/") == "broadside send --rate 5")
        #expect(command.withheld == ["hook"])
    }
}
