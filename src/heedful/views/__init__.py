"""Views: one module a subject turns records into blocks; terminal, page and notebook render them.

It may use every room below it, computes nothing, and works without torch. `blocks.view(record)`
gives the blocks of a record, for `print` and for notebooks. Begin with `blocks`, then `attention`.
"""
