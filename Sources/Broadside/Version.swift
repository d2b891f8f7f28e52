// Errors of the library are of its lowest module.
@_exported public import Support

/// The version of the engine and of the command.
public let broadsideVersion = "0.2.0-dev"
