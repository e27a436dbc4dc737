"""Sources of files: local trees, Git mirrors, fileserver backends, URLs; and files that a minion sends to the
master.
"""
