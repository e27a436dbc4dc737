"""Format the findings of ``check``: as text in the form of compiler errors (``file:line: level: message``), or as
SARIF. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.analysis.finding import Finding, count
from statecore.analysis.rules import RULES


def check_text(findings: Sequence[Finding], shorten: Callable[[str], str] = str) -> str:
    """Return all findings as text: one block a finding, then a line with the number of errors, warnings and notes.

    ``shorten(text)`` returns a line with shorter file paths, for example relative to the current directory.
    """
    return "\n".join([*(_block(finding, shorten) for finding in findings), _summary(count(findings))])


def _block(finding: Finding, shorten: Callable[[str], str]) -> str:
    location = f"{finding.mark}: " if finding.mark else ""
    first, *rest = finding.message.rstrip().split("\n")
    lines = [f"{location}{finding.level.value}: {first} [{finding.rule}]", *(f"    {line.strip()}" for line in rest)]
    if finding.hint:
        lines.append(f"    {finding.hint}")
    if finding.runs:
        lines.append(f"    with {', '.join(finding.runs)}")
    lines = [shorten(line) for line in lines]
    lines += [f"      | {line}".rstrip() for line in finding.excerpt.rstrip("\n").split("\n") if finding.excerpt]
    return "\n".join([*(_shown(line) for line in lines), ""])


def _shown(line: str) -> str:
    """Return a line without what a terminal obeys, and without what a log of GitHub Actions takes for a command."""
    text = "".join(one if one.isprintable() or one == "\t" else ascii(one)[1:-1] for one in line)
    return text.replace("::", ":\\:", 1) if text.lstrip().startswith("::") else text


def _summary(counts: Mapping[str, int]) -> str:
    numbers = [f"{number} {level if number != 1 else level[:-1]}" for level, number in counts.items() if number]
    return ", ".join(numbers) or "nothing found"


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Sequence[Finding], uri: Callable[[str], str], version: str) -> dict[str, object]:
    """Return the findings as a SARIF 2.1.0 log with one run, as a map for JSON.

    ``uri(file)`` returns the file's path for the viewer, relative to the repository if possible. ``version`` is
    statecore's.
    """
    names = list(RULES)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "statecore", "version": version, "rules": [_rule(name) for name in names]}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, names.index(finding.rule), uri) for finding in findings],
            }
        ],
    }


def _rule(name: str) -> dict[str, object]:
    rule = RULES[name]
    return {
        "id": name,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.advice},
        "defaultConfiguration": {"level": rule.level.value},
    }


def _result(finding: Finding, index: int, uri: Callable[[str], str]) -> dict[str, object]:
    text = finding.message + (f" ({finding.hint})" if finding.hint else "")
    result: dict[str, object] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.level.value,
        "message": {"text": text},
    }
    if finding.mark is not None:
        location: dict[str, object] = {"artifactLocation": {"uri": uri(finding.mark.file)}}
        if finding.mark.line:
            region = {"startLine": finding.mark.line, "startColumn": finding.mark.column}
            location["region"] = {key: value for key, value in region.items() if value}
        result["locations"] = [{"physicalLocation": location}]
    if finding.runs:
        result["properties"] = {"runs": list(finding.runs)}
    return result
