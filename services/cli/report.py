"""The words that ``salt`` prints around the returns: Salt's own, since scripts look for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.kit.jobs.returns import retcode_of

NO_MATCH = "No minions matched the target. No command was sent, no jid was assigned."
NO_RETURN = "ERROR: No return received"
FAILED = "ERROR: Minions returned with non-zero exit code"

_LATER = (
    "The minions may not have all finished running and any remaining minions will return upon completion. "
    "To look up the return data for this job later, run the following command:\n\nsalt-run jobs.lookup_jid {jid}"
)
_SILENT = "Minion did not return."


def no_response(jid: str) -> dict[str, Any]:
    """What stands in the place of a return that did not come."""
    return {"return": f"{_SILENT} [No response]\n" + _LATER.format(jid=jid), "out": "no_return", "retcode": 1}


def later(jid: str) -> str:
    """Where to find the returns of a job that is left to itself."""
    return f"This job's jid is: {jid}\n" + _LATER.format(jid=jid)


def started(jid: str, *, verbose: bool, show_jid: bool) -> str:
    """The line about the job before its returns; empty: none."""
    if verbose:
        line = f"Executing job with jid {jid}"
        return f"{line}\n{'-' * len(line)}\n"
    return f"jid: {jid}" if show_jid else ""


def is_silent(load: Mapping[str, Any]) -> bool:
    """Whether the load is ``no_response``."""
    return load.get("out") == "no_return"


def summary(loads: Mapping[str, Mapping[str, Any]], *, verbose: bool) -> str:
    """``--summary``; verbose names the minions."""
    silent = [minion for minion, load in loads.items() if is_silent(load)]
    failed = [minion for minion, load in loads.items() if not is_silent(load) and retcode_of(load)]
    rule = "-" * 43
    lines = ["\n", rule, "Summary", rule]
    lines.append(f"# of minions targeted: {len(loads)}")
    lines.append(f"# of minions returned: {len(loads) - len(silent)}")
    lines.append(f"# of minions that did not return: {len(silent)}")
    lines.append(f"# of minions with errors: {len(failed)}")
    if verbose and silent:
        lines.append(f"Minions not responding: {' '.join(silent)}")
    if verbose and failed:
        lines.append(f"Minions with failures: {' '.join(failed)}")
    return "\n".join([*lines, rule])


def documentation(loads: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Function and text of what sys.doc returned, each function once, sorted."""
    found: dict[str, str] = {}
    for load in loads.values():
        docs = load["return"]
        if isinstance(docs, Mapping):
            found.update({str(fun): str(text) for fun, text in docs.items() if text and fun not in found})
    yield from sorted(found.items())
