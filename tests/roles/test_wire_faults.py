"""What functions return that no wire carries, and what is too large for it: an end, in words (docs/wire-faults.md)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import Lab

pytestmark = pytest.mark.roles

#: Functions whose returns are no plain data, or too much of it.
MODULE = '''\
"""Returns what it is asked for."""

import datetime


def large(size):
    """So many bytes."""
    return "x" * size


def thing():
    """An object."""
    plain = {"object": object, "bytes": b"\\xff\\x00", "set": {3, 1}, (1, 2): "key"}
    return {**plain, "when": datetime.datetime(2026, 1, 2), "number": 2**80}


def broken():
    """Text that is no UTF-8, as names of files are read."""
    return ["\\udcff\\udc00", float("nan")]


def ring():
    """A list in itself."""
    found = []
    found.append(found)
    return found


def steps():
    """A generator."""
    yield "one"
    yield "two"


def dies():
    """Ends its process."""
    raise SystemExit(3)
'''


@pytest.fixture(scope="module")
def narrow(module_labs: NewLab) -> Iterator[Lab]:
    """A lab whose master reads little at once; one of its minions knows it, the other sends what it has."""
    lab = module_labs(options={"max_request_bytes": 400_000})
    (lab.tree / "salt" / "_modules" / "odd.py").write_text(MODULE)
    path = lab.root / "minions" / "web1" / "minion"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"max_return_bytes": 300_000}))
    lab.start_all()
    lab.salt("*", "saltutil.sync_modules")
    return lab


def test_what_no_wire_carries_is_returned_as_its_text(narrow: Lab) -> None:
    thing = narrow.salt("web1", "odd.thing")["web1"]
    assert thing["set"] == [1, 3]
    assert thing["when"].startswith("2026-01-02")
    assert "object" in thing["object"]
    assert str(2**80) in str(thing["number"])
    assert narrow.salt("web1", "odd.broken")["web1"][0] == "\\udcff\\udc00"
    assert narrow.salt("web1", "odd.steps") == {"web1": ["one", "two"]}
    assert "web1" in narrow.salt("web1", "odd.ring")
    ended = narrow.run("salt", "web1", "odd.dies")
    assert ended.code == 1, ended
    assert "SystemExit" in ended.out


def test_what_is_larger_than_the_minion_may_send_is_told_at_once(narrow: Lab) -> None:
    """A hundred megabytes: nothing of them is stored or sent."""
    answer = narrow.run("salt", "-t", "20", "web1", "odd.large", "100000000")
    assert answer.code == 1, answer
    assert "ReturnTooLarge: what odd.large returned is 1000" in answer.out
    assert "more than max_return_bytes of the minion (300000)" in answer.out
    assert len(narrow.salt("web1", "odd.large", "250000")["web1"]) == 250_000


def test_what_is_larger_than_the_master_reads_is_given_up(narrow: Lab) -> None:
    """The master closes the connection without a word. The minion asks whether it is there, and tells what happened."""
    answer = narrow.run("salt", "-t", "40", "web2", "odd.large", "500000", seconds=60)
    assert answer.code == 1, answer
    assert "ReturnTooLarge: what odd.large returned is 5001" in answer.out
    assert "more than the master reads at once" in answer.out
    assert narrow.salt("web2", "test.ping") == {"web2": True}
    assert narrow.tracebacks() == []


def test_what_is_called_wrongly_says_so(narrow: Lab) -> None:
    for words, said in (
        (("odd.nothing",), "'odd.nothing' is not available."),
        (("test.echo",), "missing 1 required"),
        (("test.ping", "too", "many"), "takes 0 positional arguments but 2 were given"),
        (("test.echo", "text", "typo=1"), "typo"),
    ):
        answer = narrow.run("salt", "web1", *words)
        assert answer.code == 1, answer
        assert said in answer.out, answer
