/// The version of the engine and of the command.
public let broadsideVersion = "0.1.0"
