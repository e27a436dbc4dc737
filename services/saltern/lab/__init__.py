"""``saltern lab``: a master, Redis and two minions on loopback, run by supervisord."""
