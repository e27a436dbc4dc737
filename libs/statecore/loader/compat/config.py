"""``salt.config`` for users' modules: the options of the minion on which the module runs. No configuration file is
read.
"""

from __future__ import annotations

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts

#: Default of the option ``hash_type``.
DEFAULT_HASH_TYPE = "sha256"


def minion_config(path: object = None, *_: object, **__: object) -> dict[str, object]:
    """Return the options of the running minion as a map. ``path`` is ignored."""
    return ModuleOpts(context_of("salt.config.minion_config"))


def get_id(opts: object = None, *_: object, **__: object) -> tuple[str, bool]:
    """Return (minion id, False). The second value is always False: it says that the id was not derived from an IP
    address.
    """
    return str(context_of("salt.config.get_id").opts["id"]), False
