"""The minion: runs jobs on a managed host and returns their results."""
