// Programs that import this library also get the types of options and results, which are in the
// module that implements the command.
@_exported public import BroadsideCampaigns
