"""The command ``salt-call``: runs one function on this host."""
