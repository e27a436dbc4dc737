"""The libraries that wheels bundle: the table, the page and the installed wheels name the same versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.supply.bundled import BUNDLED, INSTALLED, Bundled

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "supply-chain.md").read_text()
ROWS = [(package, one) for package, found in BUNDLED.items() for one in found]


@pytest.mark.parametrize(
    ("package", "one"), ROWS, ids=lambda value: value.name if isinstance(value, Bundled) else value
)
def test_the_table_names_the_version_that_is_installed(package: str, one: Bundled) -> None:
    assert INSTALLED[one.name]() == one.version, (
        f"{package} bundles another {one.name}: look its faults up, change table and page"
    )


@pytest.mark.parametrize(
    ("package", "one"), ROWS, ids=lambda value: value.name if isinstance(value, Bundled) else value
)
def test_the_page_names_package_and_version(package: str, one: Bundled) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)
    assert locked
    assert f"| `{package}` {locked[1]} | {one.name} {one.version} |" in PAGE


def test_every_row_of_the_page_is_in_the_table() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \S+ \| (\S+) \S+ \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((package, one.name) for package, one in ROWS)


def test_no_bundled_library_is_left_out() -> None:
    """Wheels repaired by auditwheel keep foreign libraries in NAME.libs."""
    import sysconfig

    site = Path(sysconfig.get_path("platlib"))
    assert {path.name.removesuffix(".libs").replace("_", "-") for path in site.glob("*.libs")} <= BUNDLED.keys()
