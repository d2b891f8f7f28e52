internal import BroadsideRing

/// Ends this process when its parent process is gone, for whatever reason.
///
/// - Parameter identifier: Process ID of the parent.
public func endWithParent(_ identifier: Int32) { ParentProcess.endWith(identifier) }
