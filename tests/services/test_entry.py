"""What each role has loaded once it is imported, in a process of its own: memory that no other process shares."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

_SECONDS = 120

#: What `saltern ROLE` does before it looks at its options.
_IMPORTED = """
import importlib, sys
from saltern.entry import COMMANDS
importlib.import_module(COMMANDS[sys.argv[1]].module)
print(*sorted(sys.modules))
"""

#: No idle process needs these modules.
_NONE = frozenset(
    (
        *(
            "asyncio",
            "opentelemetry",
            "email",
            "http.client",
            "importlib.metadata",
            "zipfile",
            "csv",
            "multiprocessing",
        ),
        *("argparse", "subprocess", "shutil", "tempfile", "difflib"),
        *("concurrent.futures", "unittest", "xml", "urllib.request", "redis.cluster", "encodings.idna"),
        # Imported at the first job or function that needs them (decision 0015).
        *("croniter", "dateutil", "packaging"),
    )
)

#: Readers and writers of programs and of states.
_READERS = frozenset(
    ("jinja2", "statecore.render", "statecore.engine", "statecore.loader", "statecore.runtime.grains_gathering")
)

#: ``ssl`` comes with redis-py.
_STORE = frozenset(("redis", "masterstore", "ssl"))

#: Options of the other kind of process.
_MINIONS = frozenset(("saltern.kit.config.minion_options",))
_MASTERS = frozenset(
    ("saltern.kit.config.master", "saltern.kit.config.master_options", "saltern.kit.config.master_options")
)

#: Role -> what it must not have loaded.
NOT_LOADED: Mapping[str, frozenset[str]] = {
    "eventpublisher": _NONE | _MINIONS | _READERS | _STORE | {"cryptography.hazmat"},
    "reqserver": _NONE | _MINIONS | _READERS | _STORE | {"cryptography.hazmat"},
    "publisher": _NONE | _MINIONS | _READERS,
    "maintenance": _NONE | _MINIONS | {"jinja2", "statecore.render", "cryptography.hazmat"},
    "reactor": _NONE | _MINIONS | _READERS | {"statecore.sources.fileserver", "cryptography.hazmat"},
    "mworker": _NONE | _MINIONS | {"jinja2", "saltern.mworker.runners.table"},
    "minion": _NONE | _MASTERS | _STORE | {"jinja2", "statecore.builtin.grains"},
}


@pytest.mark.parametrize("role", NOT_LOADED)
def test_a_role_has_loaded_what_it_needs(role: str) -> None:
    words = [sys.executable, "-c", _IMPORTED, role]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert f"saltern.{role}.main" in loaded
    found = [name for name in loaded if name in NOT_LOADED[role]]
    assert found == [], "import it where it is used; statecore/model/lazy.py has a way to import a module late"
