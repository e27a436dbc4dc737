"""Git repositories that the master serves trees from (``gitfs_remotes``) and compiles pillar from (``ext_pillar: - git``).

``remotes`` reads the options, ``refs`` decides which branch or tag is which environment (both pure), ``mirror`` keeps bare
mirrors by the git command, ``tree`` is one commit as it is served.
"""
