"""Finding: one problem that a check reports; and how the findings of several runs become one list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from statecore.analysis.rules import RULES, Level
from statecore.model.errors import Mark


class Remark(NamedTuple):
    """A problem of one low chunk, found by ``statecore check``; its file and line are not yet looked up."""

    rule: str
    message: str
    #: A map with the SLS (``__sls__``) and environment (``__env__``) that declare the chunk, usually the chunk itself.
    origin: Mapping[str, object]
    #: Path of keys in the SLS: ID, state module, argument, ...
    keys: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that ``statecore check`` reports, with its file, line and column."""

    rule: str
    message: str
    mark: Mark | None = None
    sls: str = ""
    id: str = ""
    #: Source lines around ``mark``.
    excerpt: str = ""
    hint: str = ""
    #: Names (grains files) of the runs that have this finding; () if all of them have it.
    runs: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """The severity of the finding's rule: error, warning or note."""
        return RULES[self.rule].level

    def as_data(self) -> dict[str, object]:
        """Return the finding as a map for JSON, without empty fields. ``line`` and ``column`` count from 1; 0 means
        unknown.
        """
        position = {"file": self.mark.file, "line": self.mark.line, "column": self.mark.column} if self.mark else {}
        details = {"sls": self.sls, "id": self.id, "hint": self.hint, "excerpt": self.excerpt, "runs": list(self.runs)}
        head = {"level": self.level.value, "rule": self.rule, "message": self.message}
        return head | position | {key: value for key, value in details.items() if value}

    @classmethod
    def from_data(cls, data: object) -> Finding:
        """Return the finding that ``as_data`` made a map of. Raise ValueError for any other value."""
        if not isinstance(data, dict) or data.get("rule") not in RULES:
            raise ValueError("not a finding: it has no rule")
        texts = {name: data.get(name, "") for name in ("rule", "message", "sls", "id", "hint", "excerpt")}
        place = data.get("file", ""), data.get("line", 0), data.get("column", 0)
        if not all(isinstance(text, str) for text in (*texts.values(), place[0])):
            raise ValueError("not a finding: a field is no text")
        if not all(type(number) is int and number >= 0 for number in place[1:]):
            raise ValueError("not a finding: a line or a column is no number")
        return cls(**texts, mark=Mark(*place) if "file" in data else None)


def merged(runs: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Merge {run name: findings} into one list without duplicates, sorted by file, line and column.

    A finding that only some of the runs have names these runs in ``runs``; a finding of all runs has an empty ``runs``.
    """
    found: dict[tuple[object, ...], tuple[Finding, list[str]]] = {}
    for name, findings in runs.items():
        for finding in findings:
            key = (finding.mark, finding.rule, finding.message)
            known = found.setdefault(key, (finding, []))
            if name not in known[1]:
                known[1].append(name)
    listed = [replace(one, runs=tuple(names) if len(names) < len(runs) else ()) for one, names in found.values()]
    return sorted(listed, key=_place)


def count(findings: Iterable[Finding]) -> dict[str, int]:
    """Map of level ("errors", "warnings", "notes") to its number of findings. All three levels are present."""
    levels = [finding.level for finding in findings]
    return {f"{level.value}s": levels.count(level) for level in Level}


def _place(finding: Finding) -> tuple[str, int, int, str]:
    mark = finding.mark or Mark("")
    return mark.file, mark.line, mark.column, finding.rule
