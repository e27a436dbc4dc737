"""``salt-master``: all roles of a master on one machine, under one supervisor, with a Redis of its own if none is configured."""
