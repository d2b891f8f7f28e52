/// A target of the server's, with a name that the library's folders have, too.
public enum Support {}
