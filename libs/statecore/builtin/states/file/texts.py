"""The texts of sources, as edits take them: one source or several, each a template."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from statecore.builtin.states.file.content import Spec
from statecore.builtin.states.file.places import Refused
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.file_source import FileVerification, Missing, find


def texts_of(
    ctx: Context, spec: Spec, name: str, source: Any, sources: Any, source_hash: Any = None, source_hashes: Any = None
) -> list[str]:
    """The rendered text of each source, held to its digest. Raises Refused, and SlsError of a template."""
    found = []
    for entry, digest in _paired(source, sources, source_hash, source_hashes):
        try:
            # Nobody can ask for less here: what comes without a digest is taken as it is.
            wanted = FileVerification(str(digest or ""), skip_verify=not digest)
            address, place, _mode = find(ctx, entry, spec.saltenv, name, wanted)
            content = place.read_text("utf-8")
        except (CommandError, OSError, UnicodeDecodeError) as error:
            raise Refused(f"Failed to load template file {entry}{_reason(error)}") from error
        found.append(spec.rendered(ctx, content, address, name) if spec.template else content)
    return found


def _paired(source: Any, sources: Any, source_hash: Any, source_hashes: Any) -> list[tuple[Any, Any]]:
    """Each source with its hash."""
    if source and sources:
        raise Refused("source and sources are mutually exclusive")
    if source_hash and source_hashes:
        raise Refused("source_hash and source_hashes are mutually exclusive")
    if source:
        return [(source, source_hash)]
    many = list(sources or ())
    return list(zip_longest(many, list(source_hashes or ())[: len(many)]))


def _reason(error: Exception) -> str:
    """What Salt's words do not tell: they are all there is to say of a file that the tree does not have."""
    return "" if isinstance(error, Missing) else f": {error}"
