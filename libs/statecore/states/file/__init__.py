"""Files, directories and links as states (Salt's ``file`` state). Each reads, then plans; the engine applies.

One file for each kind of thing that a state brings about; ``places`` and ``content`` are what they share.
"""

from __future__ import annotations

from statecore.states.file import directory, edits, managed, presence, recurse, symlink

#: The modules whose functions make up this one.
PARTS = (managed, directory, recurse, symlink, edits, presence)
