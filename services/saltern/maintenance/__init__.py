"""The role maintenance: key rotation, expiry, presence, Git mirrors, the master's schedule."""
