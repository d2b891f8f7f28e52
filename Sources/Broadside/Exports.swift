// Errors of the library are of its lowest module.
@_exported public import Support
