"""What runners keep by name: banks, banks in banks, and that nothing is found where nothing was put."""

from __future__ import annotations

import pytest

from masterstore.store import Store

pytestmark = pytest.mark.redis


def test_banks(store: Store, second: Store) -> None:
    assert store.banks.fetch("sites", "one") == {}
    assert store.banks.names("sites") == []
    store.banks.store("sites", "one", {"a": [1, None, b"\xff", "ü"]})
    store.banks.store("sites/deep/er", "two", 2)
    store.banks.store("sitesandmore", "three", 3)
    assert second.banks.fetch("sites", "one") == {"a": [1, None, b"\xff", "ü"]}
    assert second.banks.names("sites") == ["deep", "one"]
    assert second.banks.names("sites/deep") == ["er"]
    assert store.banks.flush("sites", "one") is True
    assert store.banks.flush("sites", "one") is False
    assert second.banks.names("sites") == ["deep"]
    assert store.banks.flush("sites") is True
    assert store.banks.flush("sites") is False
    assert second.banks.names("sites") == second.banks.names("sites/deep/er") == []
    assert second.banks.fetch("sitesandmore", "three") == 3
