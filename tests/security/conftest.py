"""Fixtures for attacks: key pairs of a master and two minions, a worker without sockets on a real Redis, parts of a minion."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecore.host.host import Host
from statecore.model.context import Context
from tests.saltwire.conftest import master_key, minion_key, other_key
from tests.services.conftest import master_keys, new_options, new_role, role_keys
from tests.services.mworker.conftest import minion_keys, new_worker, worker
from tests.statecore.conftest import PlainMinion

__all__ = [
    "master_key",
    "master_keys",
    "minion_key",
    "minion_keys",
    "new_options",
    "new_role",
    "new_worker",
    "other_key",
    "role_keys",
    "worker",
]


class LocalMinion(PlainMinion):
    """A minion whose managed host can also be this machine."""

    def here(self) -> Context:
        """Return the context of a state run that manages this machine, not a directory of it."""
        return self.context(host=Host("/"))


@pytest.fixture
def plain(tmp_path: Path) -> LocalMinion:
    return LocalMinion(tmp_path)
