"""Content of files on the managed host: compare, plan a change, back up, replace atomically."""
