"""Functions that templates ask about the host: a wrong question has Salt's answer, and is no exception."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.builtin.modules import user
from statecore.model.errors import InvocationError
from tests.conftest import Oracle
from tests.statecore import function_calls

#: Function and arguments -> the answer.
ANSWERS = [
    ("file.is_link", ["here"], False),
    ("file.is_blkdev", ["here"], False),
    ("file.is_chrdev", ["here"], False),
    ("file.is_fifo", ["here"], False),
    ("file.get_devmm", ["here"], [0, 0]),
    ("file.contains", ["here", "x"], False),
    ("file.contains_glob", ["here", "x"], False),
    ("file.contains_regex", ["here", "x"], False),
    ("mount.is_mounted", ["here"], False),
    ("ssh.check_known_host", [], {"status": "error", "error": "hostname argument required"}),
]


@pytest.mark.parametrize(("function", "args", "answer"), ANSWERS)
def test_a_wrong_question(plain: Any, function: str, args: list[str], answer: object) -> None:
    told = plain.call(function, *args)
    assert (list(told) if isinstance(told, tuple) else told) == answer


@pytest.mark.oracle
def test_salt_answers_so(oracle: Oracle, tmp_path: Any) -> None:
    told = function_calls.salts(oracle, tmp_path / "cache", [(function, args, {}) for function, args, _ in ANSWERS])
    assert told == [["return", answer] for *_, answer in ANSWERS]


def test_a_wrong_uid_is_named(plain: Any) -> None:
    with pytest.raises(InvocationError, match="uid is a number, not 'many'"):
        user.chuid(plain.context(), "root", "many")


def test_a_context_that_is_no_map_is_none(plain: Any) -> None:
    ctx = plain.context()
    rendered: list[object] = []

    class Templates:
        def render(self, text: str, template: str, variables: object, **_: object) -> str:
            rendered.append(variables)
            return text

    ctx = plain.context(templates=Templates())
    assert ctx.call("file.apply_template_on_contents", "x", "jinja", "no map", {"a": 1}, "base") == "x"
    assert rendered == [{"a": 1}]
