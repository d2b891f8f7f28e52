"""One Broadside campaign over many machines.

A freeze splits a list into parts by a hash of the token. One `broadside send` sends each part, with its own
ledger on a file system that all machines share. The ledgers then become one table of outcomes.
"""
