/// The version of the engine and of the command.
public let broadsideVersion = "1.0.0-beta.1"
