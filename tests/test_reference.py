"""The generated pages say what the tables say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from saltern.cli.complete import NAMES
from statecore.loader import Loader

ROOT = Path(__file__).resolve().parent.parent


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["config.md", "metrics.md", "redis.md"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    page = _reference().PAGES[name]()
    assert (ROOT / "docs" / name).read_text("utf-8") == page, "run `make reference`"
    assert page.count("\n|") > 10


def test_the_names_that_shells_complete_are_up_to_date() -> None:
    names = NAMES.read_text("utf-8")
    assert names == _reference().names_page(), "run `make reference`"
    assert {"test.ping", "state.apply", "pkg.install"} <= set(json.loads(names)["functions"])


def test_every_built_in_function_has_a_page_and_says_what_it_does() -> None:
    reference = _reference()
    pages = reference.reference_pages()
    loader = Loader()
    missing, silent = [], []
    for kind in reference.KINDS:
        for name, serving in loader.built_in(kind).items():
            page = pages[f"{kind}/{name}.md"]
            assert f"({kind}/{name}.md)" in pages["README.md"]
            for served in serving:
                missing += [f"{name}.{each}" for each in served.listed if f"\n## {name}.{each}\n" not in page]
                silent += [f"{name}.{each}" for each, own in served.functions.items() if not own.__doc__]
                silent += [] if served.module_doc else [name]
    assert (missing, silent) == ([], [])
    assert len(pages) > 100
    assert "`file.managed(name, source=None" in pages["states/file.md"]
    assert "Served by pkg_apk, pkg_apt" in pages["modules/pkg.md"]
