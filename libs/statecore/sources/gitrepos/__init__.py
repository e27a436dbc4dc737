"""Git repositories that the master serves files from (``gitfs_remotes``) and compiles pillar from (``ext_pillar: -
git``).

``remotes`` reads the options. ``refs`` maps branches and tags to saltenvs. ``mirror`` keeps bare mirrors with the git
command. ``tree`` is the file tree of one commit.
"""
