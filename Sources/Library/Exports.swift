// Importing the library alone also provides what the command is made of, and the types of options and results.
@_exported public import BroadsideCampaigns
