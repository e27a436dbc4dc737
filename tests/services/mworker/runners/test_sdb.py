"""The runner ``sdb``: profiles of the master's configuration, read and written as an operator does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.kit.config.master import MasterOptions, load_master
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltern.mworker.runners.table import RUNNERS
from statecore.model.redaction import shown_arguments


@pytest.fixture
def tools(tmp_path: Path) -> RunnerTools:
    (tmp_path / "master").write_text(
        f"secrets: {{driver: sqlite3, database: {tmp_path}/secrets.db}}\n"
        f"fixed: {{driver: json, data: {{a: {{b: 1}}}}}}\n"
        f"cachedir: {tmp_path}/cache\nredis_url: redis://127.0.0.1:1/0\n"
    )
    options: MasterOptions = load_master(str(tmp_path), {})
    return cast(RunnerTools, SimpleNamespace(options=options))


def test_values_are_stored_and_read(tools: RunnerTools) -> None:
    def call(fun: str, *args: Any) -> Any:
        return RUNNERS[f"sdb.{fun}"](tools, *args)

    assert call("get", "sdb://secrets/a") is None
    assert call("set", "sdb://secrets/a", {"n": 1}) is True
    assert call("get", "sdb://secrets/a") == {"n": 1}
    assert call("delete", "sdb://secrets/a") is True
    assert call("get", "sdb://secrets/a") is None
    made = call("get_or_set_hash", "sdb://secrets/h", 12, "ab")
    assert len(made) == 12
    assert set(made) <= {"a", "b"}
    assert call("get_or_set_hash", "sdb://secrets/h") == made
    assert call("get", "no uri") == "no uri"
    assert call("set", "sdb://none/a", 1) is False
    with pytest.raises(RunnerFault, match="json"):
        call("set", "sdb://fixed/a", 1)


def test_what_is_stored_is_not_shown() -> None:
    for fun in ("sdb.set", "runner.sdb.set"):
        shown = shown_arguments(fun, ["sdb://secrets/a", "hidden words"])
        assert "hidden words" not in str(shown)
