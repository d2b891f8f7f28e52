internal import BroadsideRing

/// Ends this process when its parent process has ended in any way.
///
/// - Parameter identifier: Process ID of the parent.
public func endWithParent(_ identifier: Int32) { ParentProcess.endWith(identifier) }
