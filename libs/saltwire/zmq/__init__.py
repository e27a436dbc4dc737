"""The only sockets of saltwire: a minion's two."""
