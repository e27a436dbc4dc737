"""The managed host: its root directory, users, commands, and the files that states write on it."""
