internal import CBroadsideOpenSSL

/// The OpenSSL library used by this process.
public enum TLSLibrary {
    /// The library's name and version, such as `OpenSSL 3.5.1`.
    public static var version: String {
        // SAFETY: OpenSSL returns a constant text that ends with a zero byte.
        unsafe "OpenSSL " + String(cString: OpenSSL_version(OPENSSL_FULL_VERSION_STRING))
    }

    /// Prevents OpenSSL from freeing its state when the process exits; must be called before any
    /// other use of OpenSSL. The process does not wait for threads that are blocked in a system
    /// call, and such a thread may still use OpenSSL objects at that time.
    public static func keepAtExit() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
