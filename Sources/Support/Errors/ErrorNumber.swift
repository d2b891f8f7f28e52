internal import Glibc

/// What an error number means, in words.
package func describe(errno number: Int32) -> String {
    assert(number >= 0, "an error number is not the negative result of a call")
    // SAFETY: strerror has a text for any number; it stays until this thread's next call (glibc
    // 2.32 and later), and is copied at once.
    return unsafe String(cString: unsafe strerror(number))
}
