"""What each command has imported when it ends: its start time is that of its imports, and a count of modules is the same on
every machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.services.test_start import COMMANDS

_SECONDS = 120

#: Runs a function of ``saltern.start`` and writes the names of the imported modules to a file. Commands end by ``os._exit``.
_ENDED = """
import os, sys
from pathlib import Path
end, told, main = os._exit, Path(sys.argv.pop(1)), sys.argv.pop(1)

def note(code):
    told.write_text("\\n".join(sys.modules))
    end(code)

os._exit = note
from saltern import start
try:
    sys.exit(getattr(start, main)())
finally:
    note(1)
"""

#: No command needs these.
_NONE = frozenset(
    (
        *("asyncio", "concurrent.futures", "multiprocessing", "subprocess", "tempfile", "difflib", "unittest", "pydoc"),
        *("email", "http.client", "urllib.request", "importlib.metadata", "zipfile", "csv", "xml"),
        *("jinja2", "statecore.render", "statecore.compile", "statecore.engine"),
        *("redis", "masterstore", "ssl", "opentelemetry", "cryptography", "psutil"),
        *("saltern.mworker", "saltern.reqserver", "saltern.lab"),
    )
)

#: Modules of a minion, which commands of the master do not need.
_MINION = frozenset(("saltern.minion", "statecore.loader", "statecore.runtime", "statecore.builtin.grains"))


class Imports(NamedTuple):
    """The words of a command that go furthest without a master, what it must not import, and its largest number of modules."""

    words: tuple[str, ...]
    not_imported: frozenset[str]
    most: int


#: Command -> its imports. A command of the master ends where its key is missing, after it has imported what reaches the master.
IMPORTS: Mapping[str, Imports] = {
    "salt": Imports(("*", "test.ping"), _NONE | _MINION, 246),
    "salt-run": Imports(("manage.up",), _NONE | _MINION, 247),
    "salt-key": Imports(("-L",), _NONE | _MINION, 235),
    "salt-cp": Imports(("*", __file__, "/nowhere"), _NONE | _MINION, 241),
    "eventlisten": Imports((), _NONE | _MINION, 235),
    "salt-call": Imports(("--local", "test.ping"), _NONE | {"zmq", "msgpack"}, 283),
}


@pytest.mark.parametrize("command", IMPORTS)
def test_a_command_imports_what_it_needs(command: str, tmp_path: Path) -> None:
    row, told = IMPORTS[command], tmp_path / "imported"
    done = subprocess.run(
        [sys.executable, "-c", _ENDED, str(told), COMMANDS[command].main, "-c", str(tmp_path), *row.words],
        env={name: value for name, value in os.environ.items() if not name.startswith(("SALT", "COV"))},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    imported = told.read_text().split()
    assert "saltern.kit.command.command_line" in imported, done.stderr
    found = sorted(row.not_imported.intersection(imported))
    assert found == [], "import it where it is used; statecore/model/lazy.py has a way to import a module late"
    assert len(imported) <= row.most, "its start takes longer: see what it imports, and raise the number if it has to"


def test_every_command_with_an_answer_is_there() -> None:
    # The others run until they are ended; test_entry.py has their imports.
    assert set(COMMANDS) - set(IMPORTS) == {"salt-minion", "salt-master", "saltern"}
