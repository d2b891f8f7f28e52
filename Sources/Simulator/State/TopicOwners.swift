/// The team to which each topic belongs: a provider key is valid for topics of its team only.
struct TopicOwners {
    private let firstTeam: String
    private var teams: [String: String] = [:]
    /// Topics besides those of the first team, in the order in which they were added.
    private(set) var further: [String] = []

    /// - Parameters:
    ///   - team: The team of the state directory.
    ///   - topics: The topics of that team.
    init(team: String, topics: [String]) {
        firstTeam = team
        for topic in topics { teams[topic] = team }
    }

    /// Assigns a topic to a team; returns false if the topic belongs to another team.
    mutating func add(_ topic: String, team: String) -> Bool {
        if let owner = teams[topic] { return owner == team }
        teams[topic] = team
        further.append(topic)
        return true
    }

    /// Returns the topics of a team. Returns nil for the first team if no other team has topics,
    /// because no topic needs a check in this case.
    func topics(of team: String) -> [[UInt8]]? {
        if team == firstTeam, further.isEmpty { return nil }
        return teams.filter { $0.value == team }.keys.sorted().map { Array($0.utf8) }
    }
}
