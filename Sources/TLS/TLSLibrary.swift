internal import CBroadsideOpenSSL

/// The OpenSSL that this process uses.
public enum TLSLibrary {
    /// Its name and version, such as `OpenSSL 3.5.1`.
    public static var version: String {
        // SAFETY: OpenSSL gives a text of its own that ends with a zero byte and is never freed.
        unsafe "OpenSSL " + String(cString: OpenSSL_version(OPENSSL_FULL_VERSION_STRING))
    }

    /// Has OpenSSL free nothing when the process exits; called before anything else of it. The process does
    /// not wait for threads that hang in a call of the system's, and such a thread may still free what it has
    /// of OpenSSL then.
    public static func keepAtExit() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
