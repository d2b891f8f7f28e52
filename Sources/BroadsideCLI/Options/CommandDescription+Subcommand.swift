import BroadsideCampaigns
import BroadsideSupport

/// The parts of a command's description that are about one subcommand, for its help. Without a
/// subcommand, they are those of the whole command.
extension CommandDescription {
    /// Returns the subcommand whose help a call with these words asks for; nil if it asks for the
    /// help of the command. The help of an only subcommand is that of the command.
    func helpTopic(_ words: some Collection<String>) -> String? {
        guard subcommands.count > 1, let word = words.first, subcommands.contains(word) else {
            return nil
        }
        return word
    }

    /// Returns the text after the command's name in the usage line.
    func usage(of subcommand: String?) -> String {
        guard let subcommand else { return usage }
        for alternative in usage.split(separator: " | ") {
            let words = alternative.split(separator: " ", maxSplits: 1)
            if words[0].split(separator: "|").contains(subcommand[...]) {
                return ([subcommand] + words.dropFirst().map(String.init)).joined(separator: " ")
            }
        }
        return "\(subcommand) [OPTIONS]"
    }

    /// Returns the sections with the options that the subcommand accepts.
    func sections(of subcommand: String?) -> [OptionSection] {
        guard let subcommand else { return sections }
        let own = Set(options(after: [subcommand]).map(\.name))
        return sections.map { section in
            var options = section.options.filter { own.contains($0.name) }
            for index in options.indices {
                options[index].help = help(options[index].help, of: subcommand)
            }
            return OptionSection(title: section.title, options: options)
        }
        .filter { !$0.options.isEmpty }
    }

    /// Returns what an option's help says about a subcommand. In a help such as `list; find: JSON`,
    /// the names before a colon apply up to the next names, and text before any names to all.
    private func help(_ text: String, of subcommand: String) -> String {
        var result: [Substring] = []
        var applies = true
        for part in text.split(separator: "; ") {
            var part = part
            if let colon = part.firstRange(of: ": ") {
                let names = part[..<colon.lowerBound].split(separator: ", ").map(String.init)
                if names.allSatisfy(subcommands.contains) {
                    applies = names.contains(subcommand)
                    part = part[colon.upperBound...]
                }
            }
            if applies { result.append(part) }
        }
        return result.joined(separator: "; ")
    }

    /// Returns the parts of the discussion, with the entry of this subcommand only.
    func discussion(of subcommand: String?) -> Discussion {
        var discussion = Discussion(of: self)
        if let subcommand {
            discussion.removeEntries { subcommands.contains($0.word) && $0.word != subcommand }
        }
        return discussion
    }

    /// Returns the examples that call the subcommand.
    func examples(of subcommand: String?) -> [CommandExample] {
        guard let subcommand else { return examples }
        return examples.filter { $0.call.hasPrefix("broadside \(name) \(subcommand) ") }
    }
}
