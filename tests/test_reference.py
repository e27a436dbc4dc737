"""The generated pages say what the tables say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["config.md", "redis.md"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    page = _reference().PAGES[name]()
    assert (ROOT / "docs" / name).read_text("utf-8") == page, "run `make docs`"
    assert page.count("\n|") > 10


def test_every_link_of_the_readme_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    links = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert len(links) > 5
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
