internal import Glibc

/// Returns the description of an error number.
package func describe(errno number: Int32) -> String {
    assert(number >= 0, "an error number is not the negative result of a call")
    // SAFETY: strerror has a text for any number; it stays valid until this thread's next call
    // (glibc 2.32 and later) and is copied immediately.
    return unsafe String(cString: unsafe strerror(number))
}
