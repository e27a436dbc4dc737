"""Pass: an SLS that is required must be in the run (seed 003). IDs and names are looked up by the engine, which follows them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from statecore.compile.draft import REQUISITES, Draft
from statecore.errors import SlsFault
from statecore.types import Low

_GLOB = frozenset("*?[]")


def check(draft: Draft) -> Draft:
    """The same draft, with a fault for every requisite on an SLS that nobody named. One that is empty is met."""
    known: set[Any] = {part.rendered.sls for part in draft.parts if not part.rendered.high}
    for low in draft.chunks:
        known.update((low.get("__sls__"), *low.get("__sls_included_from__", ())))
    return draft.with_faults(
        [
            _unknown(draft, low, kind, sls, known)
            for low in draft.chunks
            for kind, sls in _required(low)
            if sls not in known and not _GLOB & set(sls)
        ]
    )


def _required(low: Low) -> Iterator[tuple[str, str]]:
    """(kind of requisite, SLS) of a chunk."""
    for kind in sorted(REQUISITES & low.keys()):
        for reference in low[kind] if isinstance(low[kind], list) else ():
            if isinstance(reference, Mapping) and isinstance(reference.get("sls"), str):
                yield kind, reference["sls"]


def _unknown(draft: Draft, low: Low, kind: str, sls: str, known: set[Any]) -> SlsFault:
    text = (
        f"Referenced state does not exist for requisite [{kind}: (sls: {sls})] in state [{low['name']}]"
        f" in SLS [{low.get('__sls__')}]"
    )
    near = difflib.get_close_matches(sls, [str(each) for each in known], n=1)
    hint = f"the nearest SLS of this run is '{near[0]}'" if near else f"include '{sls}' where it is required"
    return draft.fault(text, low, str(low["__id__"]), low["state"], kind, hint=hint)
