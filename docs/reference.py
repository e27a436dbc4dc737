"""Writes the pages that tables of the code say better than anybody: ``python docs/reference.py`` (or `make docs`).

tests/test_reference.py holds the pages against the tables.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable, Mapping
from pathlib import Path

from masterstore import keys
from services.kit.config import MasterOptions, MinionOptions, StateOptions

HERE = Path(__file__).resolve().parent


def config_page() -> str:
    """docs/config.md: every option with its type, default and sentence."""
    shared = {item.name for item in dataclasses.fields(StateOptions)}
    parts = [
        "# Options",
        "",
        "Generated from `services/kit/config.py` by `make docs`. Names are Salt's where Salt has the option.",
        "",
        "A value comes from, later wins: the default; `<config dir>/master` (or `minion`); `<file>.d/*.conf` in the order of",
        "names; the environment (`SALTERN_<OPTION>` in capitals, the value as YAML). The configuration directory is",
        "`--config-dir`, else `SALT_CONFIG_DIR`, else `/etc/salt`. An option that does not exist is an error that names",
        "the nearest one.",
        "",
        "## Master: every role, and the operators' commands",
        "",
        *_rows(MasterOptions, lambda name: name not in shared),
        "",
        "## Minion and salt-call",
        "",
        *_rows(MinionOptions, lambda name: name not in shared),
        "",
        "## Both",
        "",
        *_rows(StateOptions, lambda name: True),
    ]
    return "\n".join(parts) + "\n"


def _rows(kind: type[StateOptions], wanted: Callable[[str], bool]) -> list[str]:
    hints = typing.get_type_hints(kind)
    defaults = kind()
    rows = ["| Option | Default | Type | |", "|---|---|---|---|"]
    for item in sorted(dataclasses.fields(kind), key=lambda each: each.name):
        if wanted(item.name):
            value = _cell(repr(getattr(defaults, item.name)))
            rows.append(
                f"| `{item.name}` | `{value}` | {_cell(_type(hints[item.name]))} | {_cell(item.metadata['doc'])} |"
            )
    return rows


def _type(hint: object) -> str:
    names: Mapping[object, str] = {int: "number", str: "text", bool: "true or false"}
    return names.get(hint) or str(hint).replace("typing.", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


#: File -> what it must hold.
PAGES: Mapping[str, Callable[[], str]] = {"config.md": config_page, "redis.md": keys.markdown}


def main() -> int:
    """Writes every page."""
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        sys.stdout.write(f"docs/{name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
