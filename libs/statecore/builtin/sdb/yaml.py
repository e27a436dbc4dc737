"""SDB driver ``yaml``: values of YAML files of the host.

Settings of a profile: ``files`` (paths; later files are merged over earlier ones), ``merge`` (``strategy``,
``merge_list``), ``gpg`` (True: OpenPGP messages in the values are decrypted). A key is a path such as ``db:password``.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model import yaml
from statecore.model.context import Context
from statecore.system.sdb_files import value_of


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value at a path (``db:password``) of the profile's YAML files, merged in their order; None if there is
    none.

    A missing file is logged and left out. Raise CommandError for a file that is not YAML.
    """
    return value_of(ctx, key, profile or {}, _parsed)


def _parsed(text: str) -> object:
    try:
        return yaml.load(text)
    except yaml.YamlFault as error:
        raise ValueError(f"not valid YAML: {error.placed}") from error
