"""Renderers and pipes of renderers, compared with real Salt where it has them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack
import pytest

from statecore.model.errors import SlsError
from statecore.runtime.runtime import Runtime

from .conftest import Plant, fault_of

#: A user's renderer, as it would be synced from ``_renderers``.
SHOUT = """
import salt.utils.stringutils

def render(data, saltenv="base", sls="", argline="", **kwargs):
    text = data if isinstance(data, str) else data.read()
    assert "tmplpath" in kwargs
    assert kwargs["renderers"]
    return text.upper() + "# " + saltenv + " " + sls + " " + argline + " " + __grains__["os"] + "\\n"
"""

DATA = """
def render(data, saltenv="base", sls="", **kwargs):
    return {"lines": data.read().splitlines()[1:]}
"""

FAILS = """
def render(data, saltenv="base", sls="", **kwargs):
    raise ValueError("a reason")
"""

USERS = {
    "../extmods/renderers/shout.py": SHOUT,
    "../extmods/renderers/lines.py": DATA,
    "../extmods/renderers/fails.py": FAILS,
}

#: Path -> text, of what Salt reads too.
SHARED: dict[str, str | bytes] = {
    "default.sls": "a: {{ 1 + 1 }}\n",
    "yaml.sls": "#!yaml\na: '{{ 1 }}'\n",
    "json.sls": '#!json\n{"a": [1, null, {"b": "é"}]}\n',
    "jinja-json.sls": '#!jinja|json\n{"a": {{ 1 + 1 }}}\n',
    "jinja.sls": "#!jinja\na: {{ grains.os }}\n",
    "spaces.sls": "#! jinja | yaml \na: {{ 1 }}\n",
    "from-string.sls": "#!jinja -s|yaml\na: {{ 1 }}\n",
    "old-pair.sls": "#!yaml_jinja\na: {{ 1 }}\n",
    "a-program.sls": "#!/bin/sh\na: {{ 1 }}\n",
    "py.sls": "#!py\ndef run():\n"
    "    return {'a': __grains__['os'], 's': __sls__, 'e': __env__, 'p': __pillar__['name']}\n",
    "py-salt.sls": "#!py\ndef run():\n    return {'a': __salt__['test.echo']('x'), 'b': 'test.echo' in __salt__}\n",
    "py-opts.sls": "#!py\ndef run():\n    return {'id': __opts__['id'], 'same': grains['os'] + sls + saltenv}\n",
    "shout.sls": "#!shout|yaml\na: b\n",
    "shout-args.sls": "#!shout very loud|yaml\na: b\n",
    "jinja-shout.sls": "#!jinja|shout|yaml\na: {{ 1 + 1 }}\nb: x\n",
    "lines.sls": "#!lines\na\nb\n",
    "empty.sls": "",
    "blank.sls": "\n  \n",
    "comment.sls": "# nothing\n",
    "empty-jinja.sls": "{% if false %}a: 1{% endif %}\n",
    "header.sls": '#jinja2: {"trim_blocks": true, "lstrip_blocks": true}\na: |\n  {% if 1 %}\n  x\n  {% endif %}\n  y\n',
    "header-shebang.sls": '#!jinja|yaml\n#jinja2: {"variable_start_string": "<<", "variable_end_string": ">>"}\na: << 1 >>\n',
    "header-wrong.sls": "#jinja2: {trim\na: {{ 1 }}\n",
    "header-empty.sls": "#jinja2:\na: {{ 1 }}\n",
    "header-list.sls": "#jinja2: [1]\na: {{ 1 }}\n",
    "header-late.sls": 'b: 1\n#jinja2: {"variable_start_string": "<<"}\na: {{ 1 }}\n',
    "header-unknown.sls": '#jinja2: {"nothing": 1}\na: {{ 1 }}\n',
    "header-blank.sls": '#!jinja\n#jinja2: {"trim_blocks": true}\n\na\n',
    "windows.sls": "a: 1\r\nb: |\r\n  x\r\n  y\r\n",
    "unicode.sls": "ä: 'ö ☃ 𝄞'\n",
    "mark.sls": "\ufeffa: 1\n",
}

#: The same with options of the minion.
OPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "renderer": ('{"a": "{{ 1 }}"}', {"renderer": "json"}),
    "blacklist": ("#!jinja|yaml\na: '{{ 1 }}'\n", {"renderer_blacklist": ["jinja"]}),
    "whitelist": ("#!jinja|yaml\na: '{{ 1 }}'\n", {"renderer_whitelist": ["yaml"]}),
    "whitelist-all": ("#!jinja|yaml\na: '{{ 1 }}'\n", {"renderer_whitelist": ["yaml", "jinja"]}),
    "trim": ("a: |\n  {% if 1 %}\n  x\n  {% endif %}\n", {"jinja_trim_blocks": True}),
    "lstrip": ("a: |\n  {% if 1 %}\n  x\n  {% endif %}\n", {"jinja_lstrip_blocks": True}),
    "sls-env": ("a: << 1 >>\n", {"jinja_sls_env": {"variable_start_string": "<<", "variable_end_string": ">>"}}),
    "sls-env-upper": ("a: << 1 >>\n", {"jinja_sls_env": {"VARIABLE_START_STRING": "<<", "VARIABLE_END_STRING": ">>"}}),
    "line-statements": (
        "% for i in [1, 2]\na{{ i }}: 1\n% endfor\n",
        {"jinja_sls_env": {"line_statement_prefix": "%"}},
    ),
    "env-is-for-files": ("a: {{ 1 }}\n", {"jinja_env": {"variable_start_string": "<<"}}),
    "undefined": ("a: '{{ nothing }}'\nb: '{{ nothing is defined }}'\n", {"allow_undefined": True}),
}


def _sls(name: str) -> str:
    return name.removesuffix(".sls")


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, Any]:
    """Map of name to Salt's result."""
    files = {**SHARED, **USERS, **{f"opted-{name}.sls": text for name, (text, _) in OPTED.items()}}
    asks = [
        *(["sls", name, _sls(name), {}] for name in SHARED),
        *(["sls", f"opted-{name}.sls", f"opted-{name}", opts] for name, (_, opts) in OPTED.items()),
    ]
    return dict(zip([*SHARED, *OPTED], ask_salt(files, asks), strict=True))


@pytest.fixture(scope="module")
def runtime(own_runtime: Callable[..., Runtime]) -> Runtime:
    """A Saltern minion over the same files."""
    return own_runtime({**SHARED, **USERS})


def _own(runtime: Runtime, path: str) -> Any:
    stage = runtime.contexts.run_context({})
    try:
        return json.loads(json.dumps(stage.tree._data(stage.tree.source(_sls(path), "base"))))
    except SlsError as error:
        return error


@pytest.mark.oracle
@pytest.mark.parametrize("name", SHARED)
def test_pipes_as_salt(name: str, salts: Mapping[str, Any], runtime: Runtime) -> None:
    kind, value = salts[name]
    assert kind == "value", value
    assert _own(runtime, name) == value


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTED)
def test_options_as_salt(name: str, salts: Mapping[str, Any], own_runtime: Callable[..., Runtime]) -> None:
    text, opts = OPTED[name]
    kind, value = salts[name]
    assert kind == "value", value
    assert _own(own_runtime({"a.sls": text}, **opts), "a.sls") == value


#: What real Salt's installation lacks a library for, or has not: text -> what comes of it.
OWN: dict[str, tuple[str | bytes, Any]] = {
    "toml": ('#!toml\n[a]\n"test.nop" = [{name = "x"}, {n = 1}]\n', {"a": {"test.nop": [{"name": "x"}, {"n": 1}]}}),
    "jinja, toml": ('#!jinja|toml\na = "{{ grains.os }}"\n', {"a": "Debian"}),
    "text, yaml": ("#!text|yaml\na: '{{ 1 }}'\n", {"a": "{{ 1 }}"}),
    "msgpack": (b"#!msgpack\n" + msgpack.packb({"a": [1, "\u00e9", None, 2**40]}), {"a": [1, "\u00e9", None, 2**40]}),
    "msgpack of nothing": ("#!msgpack\n", {}),
    "mako": ("#!mako|yaml\n% for n in (1, 2):\na${n}: ${grains['os']}\n% endfor\n", {"a1": "Debian", "a2": "Debian"}),
    "mako, json": ('#!mako|json\n{"a": "${sls} ${saltenv} ${tplfile}"}\n', {"a": "a base a.sls"}),
    "mako: functions": ("#!mako|yaml\na: ${salt['test.echo']('x')}\n", {"a": "x"}),
    "mako: includes": ('#!mako|yaml\n<%include file="lib/part.mako"/>\n', {"part": "Debian"}),
    "mako: from its directory": (
        '#!mako|yaml\n<%namespace name="n" file="salt://lib/defs.mako"/>\na: ${n.f(2)}\n',
        {"a": "<2>"},
    ),
    "mako, jinja": ("#!mako|jinja|yaml\na: {{ ${1 + 1} * 2 }}\n", {"a": 4}),
    "py, yaml": ("#!py|yaml\ndef run():\n    return 'a: 1'\n", {"a": 1}),
}

MAKO = {
    "lib/part.mako": "part: ${grains['os']}\n",
    "lib/defs.mako": '<%def name="f(x)"><${x}></%def>',
}


@pytest.mark.parametrize(("text", "expected"), OWN.values(), ids=OWN)
def test_own_pipes(planted: Plant, tmp_path: Path, text: str | bytes, expected: Any) -> None:
    tree = planted({"a.sls": "", **MAKO})
    (tmp_path / "base/a.sls").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert tree.render("a", "base").high == expected


FAULTS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "an unknown one": (
        "#!jinjer|yaml\na: 1\n",
        (
            "a.sls:1",
            "there is no renderer 'jinjer'; there are gpg, jinja, json, mako, msgpack, nacl, py, pyobjects, stateconf, "
            "text, toml, yaml, yamlex",
            "#!jinjer|yaml",
        ),
    ),
    "an unknown argument": ("#!jinja -x|yaml\na: 1\n", ("a.sls:1", "Unknown renderer option: -x", "#!jinja -x|yaml")),
    "json": ('#!json\n{\n"a": }\n', ("a.sls:3", "not JSON: Expecting value: line 3 column 6 (char 8)", '"a": }')),
    "json behind jinja": (
        '#!jinja|json\n{% for n in [1, 2] %}\n{% endfor %}\n{"a": }\n',
        ("a.sls:4", "not JSON: Expecting value: line 5 column 7 (char 10)", '{"a": }'),
    ),
    "toml": (
        "#!toml\na = 1\na = 2\n",
        ("a.sls:3", "not TOML: Cannot overwrite a value (at line 3, column 6)", "a = 2"),
    ),
    "toml, cut off": ("#!toml\na = [1,\n", ("a.sls:2", "not TOML: Invalid value (at end of document)", "a = [1,")),
    "msgpack": ("#!msgpack\nab", ("a.sls:0", "not msgpack: unpack(b) received extra data.", "")),
    "mako, an error": (
        "#!mako|yaml\na: 1\nb: ${nothing}\n",
        ("a.sls:3", "Mako error: 'nothing' is not defined (NameError); line 3", "b: ${nothing}"),
    ),
    "mako, its syntax": (
        "#!mako|yaml\na: 1\n% if 1\nb: 1\n",
        ("a.sls:3", "Mako error: Fragment 'if 1' is not a partial control statement", "% if 1"),
    ),
    "mako, a file that is not there": (
        '#!mako|yaml\n\n<%include file="none"/>\n',
        ("a.sls:3", "Mako error: none is not in saltenv 'base' (TemplateLookupException)", '<%include file="none"/>'),
    ),
    "gpg without a key": (
        "#!yaml|gpg\na: {}\n".format("'-----BEGIN PGP MESSAGE-----x-----END PGP MESSAGE-----'"),
        ("a.sls:0", "Could not decrypt cipher: ", ""),
    ),
}


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(planted: Plant, tmp_path: Path, text: str, expected: tuple[str, str, str]) -> None:
    tree = planted({"a.sls": text}, opts={"gpg_keydir": str(tmp_path / "no-keys")})
    place, message, excerpt = fault_of(lambda: tree.render("a", "base"))
    assert message.removeprefix("Rendering SLS 'base:a' failed: ").startswith(expected[1])
    assert (place, excerpt) == (expected[0], expected[2])


def test_a_users_renderer_that_fails(own_runtime: Callable[..., Runtime]) -> None:
    error = _own(own_runtime({"a.sls": "#!fails\nx\n", **USERS}), "a.sls")
    assert error.faults[0].message == "Rendering SLS 'base:a' failed: the renderer 'fails': a reason (ValueError)"


def test_a_users_renderer_that_cannot_be_loaded(own_runtime: Callable[..., Runtime]) -> None:
    broken = {"../extmods/renderers/broken.py": "import no_such_library\n"}
    error = _own(own_runtime({"a.sls": "#!broken\nx\n", **broken}), "a.sls")
    assert "there is no renderer 'broken' (" in error.faults[0].message
    assert "no_such_library" in error.faults[0].message


def test_a_users_renderer_in_place_of_ours(own_runtime: Callable[..., Runtime]) -> None:
    own = {
        "../extmods/renderers/yaml.py": "def render(data, saltenv='base', sls='', **kwargs):\n    return {'mine': sls}\n"
    }
    assert _own(own_runtime({"a.sls": "a: 1\n", **own}), "a.sls") == {"mine": "a"}


def test_sys_lists_renderers(own_runtime: Callable[..., Runtime]) -> None:
    names = own_runtime(USERS).catalog.names("renderers")
    assert {"shout", "jinja", "gpg"} <= set(names)


# ----------------------------------------------------------------------------------------------------------------- gpg


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a GPG key. Its gpg-agent is stopped at the end of the test."""
    home = tmp_path_factory.mktemp("k")
    home.chmod(0o700)
    _gpg(home, "--passphrase", "", "--quick-gen-key", "salt", "default", "default", "never")
    yield home
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)


def _gpg(home: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--trust-model", "always", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True, timeout=60).stdout


def _cipher(home: Path, plain: bytes) -> str:
    return _gpg(home, "--armor", "--encrypt", "-r", "salt", stdin=plain).decode()


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.oracle
def test_gpg_as_salt(keys: Path, ask_salt: Any, own_runtime: Callable[..., Runtime]) -> None:
    secret, other = _cipher(keys, b"s3cret"), _cipher(keys, b"two\nlines\n")
    foreign = secret.replace("\n\n", "\n\nAAAA", 1)
    files = {
        "value.sls": f"#!yaml|gpg\na:\n  b: |\n{_indented(secret)}",
        "behind-jinja.sls": f"#!jinja|yaml|gpg\na: {{{{ grains.os }}}}\nb: |\n{_indented(secret)}",
        "default.sls": f"a: |\n{_indented(secret)}",
        "list.sls": f"#!yaml|gpg\na:\n  - x\n  - |\n{_indented(other)}  - 5\n  - null\n",
        "within.sls": f"#!yaml|gpg\na: |\n    before\n{_indented(secret)}    between\n{_indented(secret)}    after\n",
        "escaped.sls": f"#!yaml|gpg\na: '{secret.strip()!r}'\n".replace("''", "'"),
        "whole.sls": f"#!gpg|yaml\n{_cipher(keys, b'a: [1, 2]')}",
        "plain.sls": "#!yaml|gpg\na: b\n",
        "foreign.sls": f"#!yaml|gpg\na: |\n{_indented(foreign)}b: 1\n",
    }
    lenient = {"gpg_keydir": str(keys), "gpg_decrypt_must_succeed": False}
    strict = {"gpg_keydir": str(keys), "gpg_decrypt_must_succeed": True}
    asked = [(name, lenient if name == "foreign.sls" else strict) for name in files] + [("foreign.sls", strict)]
    told = ask_salt(files, [["sls", name, _sls(name), opts] for name, opts in asked])
    for (name, opts), (kind, value) in zip(asked, told, strict=True):
        own = _own(own_runtime(files, **opts), name)
        if kind == "error":
            assert value.startswith("Could not decrypt cipher")
            assert own.faults[0].message.startswith(
                f"Rendering SLS 'base:{_sls(name)}' failed: Could not decrypt cipher"
            )
        else:
            assert own == value, name


def test_gpg_by_default_must_succeed(keys: Path, planted: Plant) -> None:
    foreign = _cipher(keys, b"x").replace("\n\n", "\n\nAAAA", 1)
    tree = planted({"a.sls": f"#!yaml|gpg\na: |\n{_indented(foreign)}"}, opts={"gpg_keydir": str(keys)})
    _, message, _ = fault_of(lambda: tree.render("a", "base"))
    assert f"(keys in {keys})" in message


def test_gpg_with_keys_that_cannot_be_written(
    keys: Path,
    planted: Plant,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys in a read-only directory, as in a mounted secret. Root may write anywhere, so ``os.access`` is replaced."""
    sealed = tmp_path / "sealed"
    shutil.copytree(keys, sealed, ignore=shutil.ignore_patterns("S.*"))
    (sealed / "private-keys-v1.d").chmod(0o500)
    before = _listing(sealed)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(sealed))
    # The path of a socket may not be long.
    scratch = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    tree = planted({"a.sls": f"#!yaml|gpg\na: |\n{_indented(_cipher(keys, b'x'))}"}, opts={"gpg_keydir": str(sealed)})
    assert tree.render("a", "base").high == {"a": "x"}
    assert _listing(sealed) == before, "gpg was at the keys themselves"
    assert list(scratch.iterdir()) == []


def _listing(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob("*"))


def test_gpg_of_what_is_no_text(keys: Path, planted: Plant) -> None:
    text = f"#!yaml|gpg\na: |\n{_indented(_cipher(keys, bytes(range(256))))}"
    tree = planted({"a.sls": text}, opts={"gpg_keydir": str(keys)})
    assert tree.render("a", "base").high == {"a": bytes(range(256))}
