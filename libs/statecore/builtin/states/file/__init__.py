"""Salt's ``file`` states: files, directories, links and device nodes.

One module for each kind of change. ``arguments`` checks the arguments that all of these states share; ``content``
computes the wanted content of a file. Each state reads the host and returns a Plan; the engine runs the plan's steps.
"""

from __future__ import annotations

from statecore.builtin.states.file import (
    cache,
    cleanup,
    copies,
    directory,
    edits,
    lines,
    links,
    managed,
    patch,
    presence,
    recurse,
    serialized,
)

#: Modules whose public functions are this package's state functions.
PARTS = (managed, directory, recurse, links, copies, edits, lines, patch, presence, serialized, cache, cleanup)
