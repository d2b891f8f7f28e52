internal import BroadsideRing

/// Makes this process end when its parent process ends, for whatever reason.
///
/// - Parameter identifier: Process ID of the parent.
public func endWithParent(_ identifier: Int32) { ParentProcess.endWith(identifier) }
