"""``salt.config`` for users' modules: the options of the minion or master on which the module runs. No configuration file is
read.
"""

from __future__ import annotations

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.model.errors import CommandError

#: Default of the option ``hash_type``.
DEFAULT_HASH_TYPE = "sha256"


def minion_config(path: object = None, *_: object, **__: object) -> dict[str, object]:
    """Return the options of the running minion as a map; in a runner those of the master. ``path`` is ignored."""
    return ModuleOpts(context_of("salt.config.minion_config"))


def master_config(path: object = None, *_: object, **__: object) -> dict[str, object]:
    """Return the options of the running master as a map. ``path`` is ignored. Raise CommandError on a minion."""
    return _of_the_master("master_config")


def client_config(path: object = None, *_: object, **__: object) -> dict[str, object]:
    """Return the options of the running master as a map, as ``master_config`` does. Raise CommandError on a minion."""
    return _of_the_master("client_config")


def get_id(opts: object = None, *_: object, **__: object) -> tuple[str, bool]:
    """Return (minion id, False). The second value is always False: it says that the id was not derived from an IP
    address.
    """
    return str(context_of("salt.config.get_id").opts["id"]), False


def _of_the_master(what: str) -> dict[str, object]:
    context = context_of(f"salt.config.{what}")
    if context.master is None:
        raise CommandError(f"salt.config.{what} works in runners only: a minion does not have the master's options")
    return ModuleOpts(context)
