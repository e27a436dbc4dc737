"""The managed host: its root directory, its users and commands, and the files that states write on it."""
