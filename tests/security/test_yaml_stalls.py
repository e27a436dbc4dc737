"""Finding 38.15: YAML documents that hold a role for minutes. Each is refused, or read in time linear in its length.

An attack is one document for one dialect. Its CPU time is compared with that of a plain document of the same length, so
that a slow machine does not change the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import pytest

from saltern.api.bodies import BodyFault, read_body
from saltern.kit.command.arguments import parse_arguments, read_arguments
from statecore.loader.compat.serializers import yaml as serializer
from statecore.loader.compat.utils import yaml as salts_yaml
from statecore.model import yaml
from statecore.model.errors import InvocationError

#: Characters of a document. At this length base 60 takes 30 times as long as a plain document.
_LENGTH = 600_000

#: Characters of a document that has a value in every few characters.
_DENSE = 200_000

#: Seconds that every document may take, and times that it may take as long as a plain document.
_SECONDS, _TIMES = 0.3, 6.0

_COLLIDING = 2**61 - 1


def _plain(length: int) -> str:
    return "".join(f"- word{number}\n" for number in range(length // 12))


def _dense(length: int) -> str:
    # The anchor leads to the loader for all of YAML.
    return "- &a {a: 1}\n" + "- {a: 1}\n" * (length // 9)


def _cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


@pytest.fixture(scope="module")
def allowed() -> Callable[[str, yaml.Dialect], float]:
    """Function from a name of STALLS and a dialect to the seconds of CPU time that the document may take."""

    @cache
    def baseline(dense: bool, dialect: yaml.Dialect) -> float:
        text = _dense(_DENSE) if dense else _plain(_LENGTH)
        return min(_cpu(lambda: _read(text, dialect)) for _ in range(2))

    return lambda name, dialect: _SECONDS + _TIMES * baseline(name in DENSE, dialect)


def _read(text: str, dialect: yaml.Dialect) -> object:
    try:
        return yaml.load(text, dialect)
    except yaml.YamlFault as fault:
        return fault


def _lines(line: str, length: int = _DENSE) -> str:
    return "".join(line.replace("#", str(number)) for number in range(length // (len(line) + 4)))


#: Name -> document. Each one takes seconds or minutes, or gigabytes, without its bound.
STALLS: dict[str, str] = {
    "a number in base 60": "a: 1" + ":59" * (_LENGTH // 3),
    "a float in base 60": "a: 1" + ":59" * (_LENGTH // 3) + ".5",
    "base 60 by its tag": "a: !!int 1" + ":59" * (_LENGTH // 3),
    "a float in base 60 by its tag": "a: !!float 1" + ":59" * (_LENGTH // 3),
    "base 60 as a key": "? 1" + ":59" * (_LENGTH // 3) + "\n: 1\n",
    "base 60 in a list": "[" + "1:59:59," * (_DENSE // 8) + "1]",
    "base 60 with a sign": "a: -1" + ":59" * (_LENGTH // 3),
    "decimal digits": "a: " + "7" * _LENGTH,
    "digits with underscores": "a: 1" + "_7" * (_LENGTH // 2),
    "hexadecimal digits": "a: 0x" + "f" * _LENGTH,
    "binary digits": "a: 0b" + "1" * _LENGTH,
    "octal digits": "a: 0" + "7" * _LENGTH,
    "digits by a tag": 'a: !!int "' + "7" * _LENGTH + '"',
    "many long numbers": _lines("- " + "7" * 4000 + "\n"),
    "digits of a float": "a: 1." + "7" * _LENGTH,
    "integer keys of one hash": "{" + "".join(f"{_COLLIDING * n}: 1," for n in range(1, _LENGTH // 25)) + "}",
    "negative keys of one hash": "{" + "".join(f"-{_COLLIDING * n}: 1," for n in range(1, _LENGTH // 25)) + "}",
    "hexadecimal keys of one hash": "{" + "".join(f"{_COLLIDING * n:#x}: 1," for n in range(1, _LENGTH // 25)) + "}",
    "a set of one hash": "!!set {" + "".join(f"{_COLLIDING * n}," for n in range(1, _LENGTH // 25)) + "}",
    "keys of one hash in an ordered map": "!!omap ["
    + "".join(f"{{{_COLLIDING * n}: 1}}," for n in range(1, _LENGTH // 30))
    + "]",
    "merged keys of one hash": "a: &a {"
    + "".join(f"{_COLLIDING * n}: 1," for n in range(1, _LENGTH // 25))
    + "}\nb: {<<: *a}\n",
    "aliases of aliases": "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "aliases of one large list": "a: &a [" + "x," * 5_000 + "]\nb: [" + "*a ," * 5_000 + "]\n",
    "merges of merges": "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, 12_000)),
    "merges of one large map": "a: &a {"
    + "".join(f"k{n}: 1," for n in range(5_000))
    + "}\n"
    + "".join(f"b{n}: {{<<: *a}}\n" for n in range(5_000)),
    "one map with many merge keys": "{" + "<<: {}," * (_DENSE // 8) + "a: 1}",
    "a merge key with many maps": "{<<: [" + "{a: 1}," * (_DENSE // 8) + "]}",
    "merge keys inside each other": "{<<: " * 150 + "{" + "".join(f"k{n}: 1," for n in range(15_000)) + "}" + "}" * 150,
    "anchors inside each other": "".join(f"{' ' * n}a: &a{n}\n" for n in range(190))
    + " " * 190
    + "b: [" + "x," * 80_000 + "]\nc: *a0\n",
    "tag directives": "".join(f"%TAG !t{n}! tag:x,{n}:\n" for n in range(_LENGTH // 22)) + "--- a\n",
    "nested lists": "[" * _LENGTH,
    "nested maps": "{a: " * (_LENGTH // 4),
    "nested entries": "- " * (_LENGTH // 2) + "x",
    "nested keys": "? " * (_LENGTH // 2) + "x",
    "nested by indentation": "".join(f"{' ' * n}a:\n" for n in range(1_000)),
    "repeated keys": "{" + "a: 1," * (_DENSE // 5) + "}",
    "an undefined alias behind all": _plain(_LENGTH) + "- *x\n",
    "a fault behind all": _plain(_LENGTH) + "- [\n",
    "a duplicate behind all": _lines("k#: 1\n") + "k0: 2\n",
    "many documents": "--- a\n" * (_DENSE // 6),
    "folded lines": "a: >\n" + "  x\n\n" * (_LENGTH // 5),
    "escapes": 'a: "' + "\\x41" * (_LENGTH // 4) + '"',
    "line ends in quotes": 'a: "' + "\n\n x" * (_LENGTH // 4) + '"',
    "spaces": "a:" + " " * _LENGTH + "b",
    "comments": "# x\n" * (_LENGTH // 4),
    "many anchors": _lines("- &a# x\n"),
    "a date with a long fraction": "a: 2024-01-01 00:00:00." + "7" * _LENGTH,
    "binary data": "a: !!binary " + "QUJD" * (_LENGTH // 4),
    "pairs": "!!pairs [" + "{a: 1}," * (_DENSE // 7) + "]",
    "a long tag": "a: !" + "x" * _LENGTH + " 1",
    "a long anchor": "a: &" + "x" * _LENGTH + " 1",
}  # fmt: skip


#: Documents with a value in every few characters.
DENSE = {
    *(
        "base 60 in a list",
        "one map with many merge keys",
        "a merge key with many maps",
        "merge keys inside each other",
    ),
    *(
        "anchors inside each other",
        "repeated keys",
        "a duplicate behind all",
        "many documents",
        "many anchors",
        "pairs",
    ),
    *("merges of merges", "merges of one large map", "aliases of one large list", "many long numbers"),
}


@pytest.mark.parametrize("dialect", yaml.DIALECTS, ids=lambda each: each.documents)
@pytest.mark.parametrize("name", STALLS)
def test_a_document_takes_no_longer_than_a_plain_one(
    name: str, dialect: yaml.Dialect, allowed: Callable[[str, yaml.Dialect], float]
) -> None:
    # The better of two: what else the machine does costs CPU time, too. A stall takes many times as long.
    took = min(_cpu(lambda: _read(STALLS[name], dialect)) for _ in range(2))
    most = 2 * allowed(name, dialect)
    assert took < most, f"{took:.2f} s; {most:.2f} s are allowed"


@pytest.mark.parametrize("dialect", yaml.DIALECTS, ids=lambda each: each.documents)
@pytest.mark.parametrize(
    "text",
    ["1:59", "1:59:59", "-1:30", "+1:30", "190:20:30", "1:30.5", "190:20:30.15", "1_0:30", "1:30."],
)
def test_no_number_is_read_in_base_60(text: str, dialect: yaml.Dialect) -> None:
    assert yaml.load(f"a: {text}\n", dialect) == {"a": text}
    assert yaml.load(f"a: [{text}]\n", dialect) == {"a": [text]}
    for tag in ("!!int", "!!float"):
        assert yaml.load(f'a: {tag} "{text}"\n', dialect) == {"a": text}


@pytest.mark.parametrize(
    "read", [salts_yaml.safe_load, salts_yaml.load, serializer.deserialize, lambda text: yaml.compose(text)],
    ids=["salt.utils.yaml", "its load", "salt.serializers.yaml", "compose"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["nested lists", "aliases of aliases", "tag directives", "nested by indentation"])
def test_users_modules_get_the_same_bounds(name: str, read: Callable[[str], object]) -> None:
    with pytest.raises((yaml.YAMLError, yaml.YamlFault, RuntimeError)):
        read(STALLS[name])


class _UsersLoader(salts_yaml.SaltYamlSafeLoader):
    """A loader that a user's module extends."""


@pytest.mark.parametrize("name", ["nested lists", "aliases of aliases", "integer keys of one hash", "decimal digits"])
def test_a_loader_of_a_user_has_the_bounds(name: str) -> None:
    with pytest.raises(yaml.YAMLError):
        salts_yaml.load(STALLS[name], Loader=_UsersLoader)


def test_a_message_does_not_repeat_the_document() -> None:
    key = "k" * 100_000
    with pytest.raises(yaml.YamlFault) as caught:
        yaml.load(f"{key}: 1\n{key}: 2\n", yaml.SLS)
    assert len(str(caught.value)) < 600


# ------------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    "word",
    ["[" + "1," * 40_000 + "1]", "{" + "a: 1, " * 20_000 + "}", "pillar={" + "a: 1, " * 20_000 + "}", "  [" + "1," * 40_000 + "1]"],
    ids=["a list", "a map", "by name", "after spaces"],
)  # fmt: skip
def test_a_long_argument_of_a_request_is_not_parsed(word: str) -> None:
    with pytest.raises(InvocationError, match="at most 65536 are read as YAML: send the list or map itself"):
        parse_arguments([word], sent=True)
    if "=" in word:
        with pytest.raises(InvocationError, match="the argument pillar"):
            read_arguments([word], sent=True)


@pytest.mark.ordinary
@pytest.mark.parametrize("word", ["x" * 100_000, "7" * 100_000, "a: b " * 20_000, '"' + "x" * 100_000 + '"'])
def test_a_long_text_of_a_request_stays_text(word: str) -> None:
    assert parse_arguments([word], sent=True) == ([word], {})


@pytest.mark.ordinary
def test_an_operators_command_parses_long_arguments() -> None:
    _, named = parse_arguments(["pillar={a: [" + "1, " * 40_000 + "1]}"])
    pillar = named["pillar"]
    assert isinstance(pillar, dict)
    assert len(pillar["a"]) == 40_001


@pytest.mark.parametrize("field", ["arg", "kwarg"])
def test_a_long_argument_of_a_form_is_not_parsed(field: str) -> None:
    with pytest.raises(BodyFault, match=f"the argument {field} is a list or map of 80002 characters as text"):
        read_body("application/x-www-form-urlencoded", f"{field}=[{'1,' * 40_000}]".encode())


@pytest.mark.parametrize("word", ["0x" + "f" * 4_000, "0b" + "1" * 14_000, "7" * 5_000, "-0x" + "f" * 4_000])
def test_a_number_that_cannot_be_written_stays_text(word: str) -> None:
    assert parse_arguments([word]) == ([word], {})
    assert parse_arguments([f"a={word}"]) == ([], {"a": word})


# --------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
@pytest.mark.parametrize("dialect", yaml.DIALECTS, ids=lambda each: each.documents)
def test_large_and_odd_documents_of_users_are_read(dialect: yaml.Dialect) -> None:
    assert len(yaml.load("".join(f"key{n}: [{n}, x]\n" for n in range(20_000)), dialect)) == 20_000  # type: ignore[arg-type]
    jids = "".join(f"2026112911262012{n:04}: done\n" for n in range(2_000))
    assert len(yaml.load(jids, dialect)) == 2_000  # type: ignore[arg-type]
    assert yaml.load("a: " + "7" * 4_300, dialect) == {"a": int("7" * 4_300)}
    if dialect is not yaml.REQUEST:
        states = "d: &d {user: root, mode: '0644'}\n" + "".join(f"s{n}: {{<<: *d, name: x}}\n" for n in range(3_000))
        assert len(yaml.load(states, dialect)) == 3_001  # type: ignore[arg-type]
