"""A job as a table of minions and states: one letter for each state on each minion, for pages that show many minions at
once. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TypedDict

from masterstore.jobs import failed
from saltern.kit.jobs.returns import retcode_of

#: Letters of a cell.
UNCHANGED, CHANGED, FAILED, WOULD_CHANGE, BLOCKED, SKIPPED, ABSENT = "=", "~", "!", "?", "x", "-", " "

#: Most characters of a return in a row.
_PREVIEW = 300

#: Most states in one table; further ones are counted in ``more``.
_MOST_COLUMNS = 2000


class MatrixColumn(TypedDict):
    """One state of a job: its tag in the running dictionary, ID, function, name and SLS."""

    tag: str
    id: str
    function: str
    name: str
    sls: str


class MatrixRow(TypedDict):
    """One minion's return: whether it failed, its return code, a letter for each column, the seconds that its states took,
    and for other returns than state runs the beginning of the return as JSON, with a digest by which equal returns are found.
    """

    id: str
    failed: bool
    retcode: int
    cells: str
    seconds: float
    preview: str
    digest: str


class Matrix(TypedDict):
    """The table of a job: its columns in order of evaluation, and a row for each minion that has returned."""

    columns: list[MatrixColumn]
    rows: list[MatrixRow]
    #: Number of states beyond the largest number of columns.
    more: int


def matrix_of(returns: Mapping[str, Mapping[str, object]]) -> Matrix:
    """Return the table of {minion id: return as the job cache has it}."""
    runs = {minion: running_of(load.get("return")) for minion, load in returns.items()}
    order: dict[str, MatrixColumn] = {}
    for run in runs.values():
        for tag, entry in sorted(run.items(), key=lambda item: _whole(item[1].get("__run_num__"))):
            if tag not in order:
                order[tag] = _column(tag, entry)
    tags = list(order)[:_MOST_COLUMNS]
    rows = [_row(minion, returns[minion], run, tags) for minion, run in sorted(runs.items())]
    return {"columns": [order[tag] for tag in tags], "rows": rows, "more": len(order) - len(tags)}


def running_of(value: object) -> dict[str, Mapping[str, object]]:
    """Return a minion's return as a running dictionary (state tag to the state's return); {} if it is none."""
    if not isinstance(value, Mapping) or not value:
        return {}
    entries = {str(tag): entry for tag, entry in value.items() if isinstance(entry, Mapping) and "result" in entry}
    return entries if len(entries) == len(value) and all(tag.count("_|-") >= 3 for tag in entries) else {}


def letter_of(entry: Mapping[str, object]) -> str:
    """Return the letter for one state's return."""
    result = entry.get("result")
    if result is False:
        return BLOCKED if entry.get("__state_ran__") is False else FAILED
    if result is None:
        return WOULD_CHANGE
    if entry.get("changes"):
        return CHANGED
    return SKIPPED if entry.get("skip_watch") else UNCHANGED


def _column(tag: str, entry: Mapping[str, object]) -> MatrixColumn:
    state, id_, name, function = _parts(tag)
    return {
        "tag": tag,
        "id": str(entry.get("__id__") or id_),
        "function": f"{state}.{function}",
        "name": str(entry.get("name") or name),
        "sls": str(entry.get("__sls__") or ""),
    }


def _parts(tag: str) -> tuple[str, str, str, str]:
    """Return (state module, ID, name, function) of a state's tag ``MODULE_|-ID_|-NAME_|-FUNCTION``."""
    state, _, rest = tag.partition("_|-")
    rest, _, function = rest.rpartition("_|-")
    id_, _, name = rest.partition("_|-")
    return state, id_, name, function


def _row(
    minion: str, load: Mapping[str, object], run: Mapping[str, Mapping[str, object]], tags: list[str]
) -> MatrixRow:
    preview = digest = ""
    if not run:
        text = json.dumps(load.get("return"), sort_keys=True, default=str, ensure_ascii=False)
        preview, digest = text[:_PREVIEW], hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return {
        "id": minion,
        "failed": failed(load) or any(entry.get("result") is False for entry in run.values()),
        "retcode": retcode_of(load),
        "cells": "".join(letter_of(run[tag]) if tag in run else ABSENT for tag in tags) if run else "",
        "seconds": round(sum(_milliseconds(entry.get("duration")) for entry in run.values()) / 1000, 3),
        "preview": preview,
        "digest": digest,
    }


def _milliseconds(value: object) -> float:
    """Return a state's duration as a number of milliseconds. Older minions send it as text with a unit."""
    if isinstance(value, str):
        value = value.split()[0] if value.split() else 0
    try:
        return max(0.0, float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
