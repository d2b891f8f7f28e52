internal import Glibc

/// What an error number means, in words.
package func describe(errno number: Int32) -> String {
    unsafe String(cString: unsafe strerror(number))
}
