internal import BroadsideRing

/// Ends this process when the one that started it is gone, however that went.
///
/// - Parameter identifier: That process's id.
public func endWithParent(_ identifier: Int32) { ParentProcess.endWith(identifier) }
