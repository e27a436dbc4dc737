"""Findings as people read them: a block each, editors know its first line; then how many there are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.analysis.finding import Finding, count


def check_text(findings: Sequence[Finding], shorten: Callable[[str], str] = str) -> str:
    """All of them. ``shorten(text)``: a text with the files that it names as the reader names them."""
    return "\n".join([*(_block(finding, shorten) for finding in findings), _summary(count(findings))])


def _block(finding: Finding, shorten: Callable[[str], str]) -> str:
    place = f"{finding.mark}: " if finding.mark else ""
    first, *rest = finding.message.rstrip().split("\n")
    lines = [f"{place}{finding.level.value}: {first} [{finding.rule}]", *(f"    {line.strip()}" for line in rest)]
    if finding.hint:
        lines.append(f"    {finding.hint}")
    if finding.runs:
        lines.append(f"    with {', '.join(finding.runs)}")
    lines = [shorten(line) for line in lines]
    lines += [f"      | {line}".rstrip() for line in finding.excerpt.splitlines()]
    return "\n".join([*lines, ""])


def _summary(counts: Mapping[str, int]) -> str:
    told = [f"{number} {level if number != 1 else level[:-1]}" for level, number in counts.items() if number]
    return ", ".join(told) or "nothing found"
