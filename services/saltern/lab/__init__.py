"""``saltern lab``: a master, Redis and two minions on loopback, supervised by one process."""
