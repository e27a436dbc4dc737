"""States disabled by ``state.disable``, stored in the grain ``state_runs_disabled``.

The grain is a list. Each row is "highstate", the name of an SLS file, "NAME.*" for all SLS files below NAME, or a glob
of state functions ("test.*").
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from statecore.model import redaction
from statecore.model.types import Low, Running, tag

GRAIN = "state_runs_disabled"


def rows(grain: object) -> list[str]:
    """Return the grain ``state_runs_disabled`` as a list of names and globs of disabled states; [] if it is not a list."""
    return [str(each) for each in grain] if isinstance(grain, list | tuple) else []


def sls_refusals(disabled: Sequence[str], names: Sequence[str]) -> list[str]:
    """List of Salt's error sentences, one for each SLS file of ``names`` that ``state.disable`` has disabled."""
    return [sentence for name in names for row in disabled if (sentence := _sls_refusal(name, row))]


def _sls_refusal(name: str, row: str) -> str:
    if ".*" in row:
        if name.startswith(f"{row.split('.')[0]}."):
            return f'The state file "{name}" is currently disabled by "{row}", to re-enable, run state.enable {row}.'
    elif name == row:
        return f'The state file "{name}" is currently disabled, to re-enable, run state.enable {name}.'
    return ""


def split(chunks: Sequence[Low], disabled: Sequence[str]) -> tuple[list[Low], Running]:
    """Return (chunks that may run, {tag: failed entry} of the chunks whose state function ``state.disable`` has disabled).

    The entries' comments are Salt's. Of several chunks with one tag, only the first is kept.
    """
    kept: dict[str, Low] = {}
    left_out: Running = {}
    for low in chunks:
        function = f"{low['state']}.{low['fun']}"
        row = next((each for each in disabled if fnmatchcase(function, each)), None)
        if row is None:
            kept.setdefault(tag(low), low)
        else:
            left_out[redaction.shown_tag(low)] = _disabled_return(low, function, row)
    return list(kept.values()), left_out


def _disabled_return(low: Low, function: str, row: str) -> dict[str, object]:
    return {
        "name": redaction.shown_name(low),
        "changes": {},
        "result": False,
        "comment": f'The state function "{function}" is currently disabled by "{row}", '
        f"to re-enable, run state.enable {row}.",
        "__sls__": low.get("__sls__"),
        "__id__": redaction.shown_id(low),
        "__state_ran__": False,
    }
