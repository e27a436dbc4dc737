"""The command ``salt-call``."""
