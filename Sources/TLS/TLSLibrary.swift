internal import COpenSSL

/// The OpenSSL that this process uses.
public enum TLSLibrary {
    /// Its name and version, such as `OpenSSL 3.5.1`.
    public static var version: String {
        // SAFETY: OpenSSL gives a text of its own that ends with a zero byte and is never freed.
        unsafe "OpenSSL " + String(cString: OpenSSL_version(OPENSSL_FULL_VERSION_STRING))
    }
}
