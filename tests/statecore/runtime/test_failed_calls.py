"""Calls that fail where Salt's function returns a value: each caller gets that value, but states get the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecore.model.errors import CallFailed
from statecore.runtime.runtime import Runtime, local_runtime

CALL = ("archive.gzip", "/nonexistent/file")
VALUE = ["gzip: /nonexistent/file: No such file or directory"]


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/own.py").write_text(
        "def item():\n    return __salt__['archive.gzip']('/nonexistent/file')\n"
        "def attribute():\n    return __salt__.archive.gzip('/nonexistent/file')\n"
    )
    return local_runtime(
        {"id": "web1", "extension_modules": str(tmp_path / "ext"), "cachedir": str(tmp_path / "cache")}
    )


def test_a_job(runtime: Runtime) -> None:
    returned = runtime.call(CALL[0], [CALL[1]])
    assert (returned.value, returned.retcode, returned.success, returned.error) == (VALUE, 1, False, None)


@pytest.mark.parametrize("function", ["own.item", "own.attribute"])
def test_a_users_module(runtime: Runtime, function: str) -> None:
    assert runtime.call(function).value == VALUE


@pytest.mark.parametrize("form", ["salt['archive.gzip']", "salt.archive.gzip", "salt.get('archive.gzip')"])
def test_a_template(runtime: Runtime, form: str) -> None:
    text = "{% if " + form + "('/nonexistent/file') %}{{ " + form + "('/nonexistent/file')[0] }}{% endif %}"
    assert runtime.context.templates.render(text, "jinja", {}, saltenv="base") == VALUE[0]


def test_states_and_built_in_modules_get_the_reason(runtime: Runtime) -> None:
    with pytest.raises(CallFailed, match="No such file or directory"):
        runtime.context.call(*CALL)


@pytest.mark.parametrize(
    ("guard", "comment"),
    [("onlyif", "onlyif condition is false"), ("unless", "Success!")],
)
def test_a_guard_takes_it_as_false(runtime: Runtime, guard: str, comment: str) -> None:
    chunk = {guard: [{"fun": CALL[0], "args": [CALL[1]]}]}
    returned = runtime.call("state.single", ["test.nop", "x"], chunk)
    (result,) = returned.value.values()
    assert (result["comment"], result["result"], returned.retcode) == (comment, True, 0)
