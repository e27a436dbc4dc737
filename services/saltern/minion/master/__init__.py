"""The minion's connection to a master: keys, sign-in, requests, failover, the master's files and pillar."""
