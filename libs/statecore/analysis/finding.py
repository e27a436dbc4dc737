"""One thing that a check found, and how several runs' findings become one list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from statecore.analysis.rules import RULES, Level
from statecore.model.errors import Mark


class Remark(NamedTuple):
    """What an analysis says about a chunk, before anybody looked up its line."""

    rule: str
    message: str
    #: Where it is declared: ``__sls__`` and ``__env__`` count.
    origin: Mapping[str, Any]
    #: Path of keys: ID, state module, argument, ...
    keys: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, with its place."""

    rule: str
    message: str
    mark: Mark | None = None
    sls: str = ""
    id: str = ""
    #: Source lines around the mark.
    excerpt: str = ""
    hint: str = ""
    #: The runs (by the name of their grains) that it was found in; () where there was one run.
    runs: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """How bad it is."""
        return RULES[self.rule].level

    def as_data(self) -> dict[str, Any]:
        """Plain data: ``file``, ``line`` and ``column`` count from 1, 0 is unknown. What is empty is left out."""
        place = {"file": self.mark.file, "line": self.mark.line, "column": self.mark.column} if self.mark else {}
        told = {"sls": self.sls, "id": self.id, "hint": self.hint, "excerpt": self.excerpt, "runs": list(self.runs)}
        head = {"level": self.level.value, "rule": self.rule, "message": self.message}
        return head | place | {key: value for key, value in told.items() if value}


def merged(runs: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """The findings of several runs, by place; each told once. One that not all runs have names those that do."""
    found: dict[tuple[Any, ...], tuple[Finding, list[str]]] = {}
    for name, findings in runs.items():
        for finding in findings:
            key = (finding.mark, finding.rule, finding.message)
            known = found.setdefault(key, (finding, []))
            if name not in known[1]:
                known[1].append(name)
    listed = [replace(one, runs=tuple(names) if len(names) < len(runs) else ()) for one, names in found.values()]
    return sorted(listed, key=_place)


def count(findings: Iterable[Finding]) -> dict[str, int]:
    """Level -> how many, every level named."""
    levels = [finding.level for finding in findings]
    return {f"{level.value}s": levels.count(level) for level in Level}


def _place(finding: Finding) -> tuple[str, int, int, str]:
    mark = finding.mark or Mark("")
    return mark.file, mark.line, mark.column, finding.rule
