/// The version of the engine and of the command.
public let broadsideVersion = "0.2.0-dev"
