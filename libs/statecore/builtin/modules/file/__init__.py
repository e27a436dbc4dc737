"""Files of the managed host (Salt's ``file`` module): what states and templates ask for."""

from __future__ import annotations

from statecore.builtin.modules.file import content, devices, editing, finding, looking, owning, parts, placing

#: The modules whose functions make up this one.
PARTS = (looking, finding, content, editing, parts, placing, owning, devices)
