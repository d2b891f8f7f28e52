// Importing the library alone also provides the types of its options and results.
@_exported public import enum BroadsideAPNs.Endpoints
@_exported public import enum BroadsideAPNs.Expiration
@_exported public import enum BroadsideAPNs.Priority
@_exported public import enum BroadsideAPNs.PushType
@_exported public import BroadsideEngine
@_exported public import enum BroadsideHPACK.IndexingPolicy
@_exported public import struct BroadsideLedgerFormat.CampaignPart
@_exported public import enum BroadsideLedgerFormat.ExportFormat
@_exported public import enum BroadsideLedgerFormat.LostResponsePolicy
@_exported public import BroadsideLedgers
@_exported public import enum BroadsideLegacyGateway.BinaryCommand
@_exported public import BroadsideLists
@_exported public import BroadsideObservability
@_exported public import struct BroadsidePolicy.CalendarDate
@_exported public import struct BroadsidePolicy.DayPeriod
@_exported public import struct BroadsidePolicy.DeliverySchedule
@_exported public import struct BroadsidePolicy.TimeOfDay
@_exported public import struct BroadsideRows.ArmSplit
@_exported public import struct BroadsideRows.ReopenedStates
@_exported public import enum BroadsideRows.RowState
@_exported public import BroadsideSupport
