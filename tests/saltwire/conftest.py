"""Key pairs of both ends, made once: a master's, a minion's, and those of a stranger."""

from __future__ import annotations

import pytest

from saltwire.keys import PrivateKey


@pytest.fixture(scope="session")
def master_key() -> PrivateKey:
    return PrivateKey.generate(2048)


@pytest.fixture(scope="session")
def minion_key() -> PrivateKey:
    return PrivateKey.generate(2048)


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return PrivateKey.generate(2048)


@pytest.fixture(scope="session")
def small_key() -> PrivateKey:
    """A key that no peer may have: it cannot hold a key string under OAEP-SHA224."""
    return PrivateKey.generate(1024)
