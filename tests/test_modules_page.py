"""docs/modules.md says what the loader's tables say."""

from __future__ import annotations

from pathlib import Path

from statecore.loader import dunders
from statecore.loader.find import DIRECTORIES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/modules.md").read_text("utf-8")


def test_every_kind_of_module_with_its_option() -> None:
    assert [kind for kind in DIRECTORIES if f"`_{kind}`" not in PAGE] == []
    assert [option for option in DIRECTORIES.values() if f"`{option}`" not in PAGE] == []


def test_every_ambient_name() -> None:
    assert [name for name in dunders._VALUES if name != "__executors__" and f"`{name}`" not in PAGE] == []


def test_every_module_of_salt_utils() -> None:
    listed = PAGE.partition("and of `salt.utils`:")[2].partition("`salt.modules.NAME`")[0]
    told = {word.strip(" .\n") for word in listed.replace("\n", " ").split(",")}
    there = {
        path.stem if path.is_file() else path.name for path in (ROOT / "libs/statecore/loader/compat/utils").iterdir()
    }
    # thin and vt have only functions that refuse.
    assert told == there - {"__init__", "__pycache__", "thin", "vt"}
