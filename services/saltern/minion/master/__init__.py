"""The minion's side of its connection to a master: sign-in, channel, failover, the master's ports."""
