"""Extensions from PyPI, unmodified, in a minion of this process.

``SALTERN_EXTENSIONS`` names the directory into which ``make extensions-test`` installed them (tests/extensions/requirements.lock).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, local_runtime


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.extensions)


@pytest.fixture(scope="session", autouse=True)
def packages() -> Iterator[Path]:
    """The directory of the installed extensions, at the end of ``sys.path``."""
    directory = os.environ.get("SALTERN_EXTENSIONS")
    if not directory:
        pytest.skip("SALTERN_EXTENSIONS names no directory with extensions (see `make extensions-test`)")
    sys.path.append(directory)
    yield Path(directory)
    sys.path.remove(directory)


class Minion:
    """A minion whose functions and states are called as jobs."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def call(self, fun: str, *args: Any, **kwargs: Any) -> Any:
        """Return the result of an execution function. An error fails the test."""
        done = self.runtime.call(fun, list(args), kwargs)
        assert done.retcode == 0, done.value
        return done.value

    def state(self, fun: str, name: str, **given: Any) -> Mapping[str, Any]:
        """Return the result of one state."""
        done = self.runtime.call("state.single", [fun, name], given).value
        assert isinstance(done, dict), done
        return dict(next(iter(done.values())))

    def functions(self, module: str, kind: str = "functions") -> set[str]:
        """Return the names of a module's functions, or with kind="state_functions" of its states."""
        return {name.partition(".")[2] for name in self.call(f"sys.list_{kind}", module)}


@pytest.fixture
def minion(tmp_path: Path) -> Callable[..., Minion]:
    """Function that returns a minion with the given options."""

    def make(**opts: Any) -> Minion:
        (tmp_path / "tree").mkdir(exist_ok=True)
        paths = {"cachedir": str(tmp_path / "cache"), "file_roots": {"base": [str(tmp_path / "tree")]}}
        return Minion(local_runtime({"id": "web1", **paths, **opts}))

    return make
