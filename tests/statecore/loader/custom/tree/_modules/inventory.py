"""
Inventory of a machine room: cross-calls, __utils__, __context__ as a cache, __func_alias__

:depends: nothing
"""

import logging

import salt.utils.data
import salt.utils.json
from salt.exceptions import CommandExecutionError, SaltInvocationError

log = logging.getLogger(__name__)

__func_alias__ = {
    "list_": "list",
}

__outputter__ = {
    "list_": "table",
}


def __virtual__():
    return True


def _items():
    key = "inventory.items"
    if key not in __context__:
        __context__[key] = __utils__["racks.parse"](__salt__["config.get"]("racks", "a1:web a2:db"))
        __context__["inventory.reads"] = __context__.get("inventory.reads", 0) + 1
    return __context__[key]


def list_(kind=None):
    """
    List the items, or those of a kind

    CLI Example:

    .. code-block:: bash

        salt '*' inventory.list web
    """
    return sorted(k for k, v in _items().items() if kind in (None, v))


def reads():
    return __context__["inventory.reads"]


def get(name, default=None):
    if not isinstance(name, str):
        raise SaltInvocationError("name must be a string")
    try:
        return _items()[name]
    except KeyError:
        if default is None:
            raise CommandExecutionError(f"No such item: {name}")
        return default


def as_json():
    return salt.utils.json.dumps(_items(), sort_keys=True)


def sub(*names, **kwargs):
    kwargs = __utils__["args.clean_kwargs"](**kwargs)
    return {"names": list(names), "kwargs": kwargs}
