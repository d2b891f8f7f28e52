// A user of the library imports it alone: what its options and results are made of comes along.
@_exported public import enum APNs.Endpoints
@_exported public import enum APNs.Expiration
@_exported public import enum APNs.Priority
@_exported public import enum APNs.PushType
@_exported public import Engine
@_exported public import enum HPACK.IndexingPolicy
@_exported public import struct LedgerFormat.CampaignPart
@_exported public import enum LedgerFormat.ExportFormat
@_exported public import enum LedgerFormat.LostAnswerPolicy
@_exported public import Ledgers
@_exported public import enum LegacyGateway.BinaryCommand
@_exported public import Lists
@_exported public import Observability
@_exported public import struct Rows.ReopenedStates
@_exported public import Support
