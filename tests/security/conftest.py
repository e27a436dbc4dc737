"""What attacks need: key pairs of a master and of two minions, and a worker without sockets over a real Redis."""

from __future__ import annotations

from tests.saltwire.conftest import master_key, minion_key, other_key
from tests.services.conftest import master_keys, role_keys
from tests.services.mworker.conftest import minion_keys, new_worker, worker

__all__ = ["master_key", "master_keys", "minion_key", "minion_keys", "new_worker", "other_key", "role_keys", "worker"]
