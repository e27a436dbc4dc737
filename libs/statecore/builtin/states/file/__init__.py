"""Files, directories and links as states (Salt's ``file`` state). Each reads, then plans; the engine applies.

One file for each kind of thing that a state brings about; ``places`` and ``content`` are what they share.
"""

from __future__ import annotations

from statecore.builtin.states.file import (
    accumulators,
    block,
    caching,
    comments,
    decoded,
    directory,
    edits,
    keyvalue,
    managed,
    nodes,
    patching,
    placement,
    presence,
    pruning,
    recurse,
    serialized,
    single_line,
    symlink,
    tidying,
)

#: The modules whose functions make up this one.
PARTS = (
    managed,
    directory,
    recurse,
    symlink,
    edits,
    presence,
    comments,
    block,
    caching,
    single_line,
    keyvalue,
    accumulators,
    placement,
    serialized,
    decoded,
    tidying,
    pruning,
    patching,
    nodes,
)
