"""``saltern store``: the master's memory looked through, mended, migrated."""
