internal import CBroadsideMicrohttpd

/// libmicrohttpd. It is loaded when the process creates its first endpoint.
@safe struct HTTPLibrary: @unchecked Sendable {
    // SAFETY: static memory that is no longer changed; the library stays loaded until the process
    // ends.
    let functions: UnsafePointer<microhttpd_functions>

    /// The library; nil if it is not installed.
    static let shared = HTTPLibrary()

    private init?() {
        // SAFETY: called once, for `shared`; all functions are set when it returns.
        guard let functions = unsafe microhttpd_load() else { return nil }
        unsafe self.functions = functions
    }
}
