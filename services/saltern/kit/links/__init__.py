"""The encrypted links between the master's roles (4507, 4512, 4513, 4516): sockets, allowed keys, messages."""
