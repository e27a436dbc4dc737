"""For programs that the oracle's Python runs (``salt_*.py``): a minion without a master, and loaders that do not look twice."""

from __future__ import annotations

from pathlib import Path

import salt.loader.lazy
import salt.utils.optsdict


def spare_repetition() -> None:
    """Salt looks at its module directories anew for each of some twenty loaders of each tree; here those of one set of
    directories never change."""
    known = {}
    look = salt.loader.lazy.LazyLoader._refresh_file_mapping

    def refresh(loader):
        key = (loader.tag, *(path for path in loader.module_dirs if Path(path).is_dir()))
        if key not in known:
            look(loader)
            known[key] = (loader.file_mapping, loader.suffix_map, loader.suffix_order)
        loader.file_mapping, loader.suffix_map, loader.suffix_order = (each.copy() for each in known[key])

    salt.loader.lazy.LazyLoader._refresh_file_mapping = refresh
    # Whether options are empty is asked ten thousand times, each time by counting them.
    salt.utils.optsdict.OptsDict.__bool__ = lambda opts: True


def placed(root):
    """Options of a minion without a master that has everything of its own below a directory."""
    return {
        "id": "web1",
        "file_client": "local",
        "root_dir": root,
        "cachedir": f"{root}/cache",
        "pki_dir": f"{root}/pki",
        "sock_dir": f"{root}/sock",
        "conf_file": f"{root}/minion",
        "extension_modules": f"{root}/extmods",
    }
