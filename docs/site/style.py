"""Checks the prose of pages for words that are not plain English: ``python docs/site/style.py FILE or DIRECTORY ...``

The rules are proselint's. It reads plain text, so code is taken out of the pages first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from proselint.checks import __register__ as every_check
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check
from proselint.tools import LintFile

#: Rules about words. Those about typography and dates find what is code or a table here.
_RULES = (
    "archaism",
    "cliches",
    "hedging",
    "industrial_language",
    "malapropisms",
    "mixed_metaphors",
    "mondegreens",
    "needless_variants",
    "nonwords",
    "oxymorons",
    "redundancy",
    "social_awareness",
    "uncomparables",
    "weasel_words",
)

_TAKES_ETCD_FOR_ETC = "redundancy.misc.after_the_deadline"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_CODE = re.compile(r"``[^\n]*?``|`[^`\n]*`|\]\([^)\n]*\)")


def prose(page: str) -> str:
    """Return the page with its code replaced by spaces, so that lines and columns stay."""
    for pattern in (_FENCE, _INDENTED, _CODE):
        page = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), page)
    return page


def faults(text: str, checks: Sequence[Check]) -> Iterator[tuple[int, str]]:
    """Yield the line and the message of each finding in a page's prose."""
    linted = LintFile("page", prose(text))
    for check in checks:
        for result in check.check_with_flags(linted.content):
            if not linted.is_quoted_pos(result.span[0]):
                yield linted.line_col_of(result.span[0])[0], f"{result.message} [{result.check_path}]"


def main(arguments: Sequence[str]) -> int:
    """Print ``file:line: message`` for each finding, and return 1 if there is one."""
    registry = CheckRegistry()
    registry.register_many(every_check)
    checks = registry.get_all_enabled({_TAKES_ETCD_FOR_ETC: False} | dict.fromkeys(_RULES, True))
    found = 0
    for place in map(Path, arguments):
        for page in sorted(place.rglob("*.md")) if place.is_dir() else [place]:
            for line, message in sorted(faults(page.read_text("utf-8"), checks)):
                found += 1
                sys.stdout.write(f"{page}:{line}: {message}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
