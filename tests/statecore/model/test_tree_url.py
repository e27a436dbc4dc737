"""Parts of ``salt://`` URLs."""

from __future__ import annotations

import pytest

from statecore.model.tree_url import split

URLS = {
    "salt://web/a.txt": ("web/a.txt", None),
    "salt:///web/a.txt": ("web/a.txt", None),
    "web/a.txt": ("web/a.txt", None),
    "salt://web/a.txt?saltenv=dev": ("web/a.txt", "dev"),
    "salt://web/a.txt?saltenv=": ("web/a.txt", None),
    "salt://web/a.txt?env=dev": ("web/a.txt", None),
    "salt://a?b": ("a", None),
    "salt://|a?b": ("a?b", None),
    "salt://|a?b?saltenv=dev": ("a?b", "dev"),
    "salt://": ("", None),
}


@pytest.mark.parametrize(("url", "parts"), URLS.items(), ids=URLS)
def test_split(url: str, parts: tuple[str, str | None]) -> None:
    assert split(url) == parts
