"""Files of the managed host: Salt's ``file`` execution module."""

from __future__ import annotations

from statecore.builtin.modules.file import (
    backup_copies,
    content,
    devices,
    edits,
    managed_parts,
    operations,
    ownership,
    programs,
    queries,
    search,
)

#: The modules whose public functions together are the execution module ``file``.
PARTS = (queries, search, content, edits, programs, backup_copies, operations, ownership, devices, managed_parts)
