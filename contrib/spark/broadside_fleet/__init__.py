"""One Broadside campaign over many machines.

A list is frozen into parts by a hash of the token, each part is sent by one `broadside send` with a
ledger of its own on a file system that all machines share, and the ledgers become one table of outcomes.
"""
