"""Functions of the compatibility package that keep data, sign, fire events, or ask the master."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from statecore.model.errors import CommandError
from statecore.runtime.runtime import Runtime, local_runtime

MODULE = """
import jinja2
import salt.cache
import salt.client.ssh.state
import salt.crypt
import salt.key
import salt.output.nested
import salt.pillar
import salt.state
import salt.states.file
import salt.states.git
import salt.utils.atomicfile
import salt.utils.event
import salt.utils.extmods
import salt.utils.files
import salt.utils.jinja
import salt.utils.master
import salt.utils.minions
import salt.utils.thin
import salt.utils.vt
from salt.loader.dunder import __file_client__, __opts__ as opts_now, __salt__ as salt_now


def evaluate(text):
    return eval(text, globals())


def rendered(name):
    loader = salt.utils.jinja.SaltCacheLoader(__opts__)
    environment = jinja2.Environment(loader=loader, extensions=[salt.utils.jinja.SerializerExtension])
    return environment.get_template(name).render(x=1)


def locked(path):
    with salt.utils.files.wait_lock(path):
        try:
            with salt.utils.files.wait_lock(path, timeout=0.01):
                return "twice"
        except salt.utils.files.FileLockError as error:
            return str(error)


def written(path):
    with salt.utils.atomicfile.atomic_open(path) as file:
        file.write("one")
    salt.utils.atomicfile.safe_atomic_write(path, b"two", "minion", __opts__["cachedir"])
"""


class Master:
    """A master that records what it is asked."""

    jid = "20261121001824892890"

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any, Any]] = []
        self.answers: dict[str, Any] = {
            "cache.grains": {"web1": {"os": "Debian"}},
            "cache.pillar": {"web1": {"a": 1}},
            "cache.mine": {"web1": {"m": 2}},
            "jobs.active": {"2026": {"fun": "test.ping"}},
            "pillar.show_pillar": {"b": 2},
            "key.list_all": {"minions": ["web1"], "minions_pre": ["new"], "local": ["master.pem"]},
            "key.list": {"minions": ["web1", "db1"]},
            "key.accept": {"minions": ["new"]},
            "key.delete": {},
            "minions.connected": ["web1"],
        }

    def run(self, calls: Any) -> list[dict[str, Any]]:
        self.asked.extend((each.fun, tuple(each.arg), dict(each.kwarg)) for each in calls)
        return [
            {"return": self.answers.get(each.fun, "no such"), "success": each.fun in self.answers} for each in calls
        ]

    def wheel(self, call: Any) -> dict[str, Any]:
        return self.run([call])[0]

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Any]]:
        yield from ((tag, {"n": n}) for n, tag in enumerate(["a/one", "b/two", "a/three"]) if tag.startswith(prefix))


class Sent:
    """An event bus that keeps what is fired."""

    def __init__(self) -> None:
        self.fired: list[tuple[str, Any]] = []

    def fire(self, tag: str, data: Any) -> bool:
        self.fired.append((tag, data))
        return True


@pytest.fixture
def minion(tmp_path: Path) -> Runtime:
    """A minion with the module ``own`` in its state tree's cache."""
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/own.py").write_text(MODULE)
    (tmp_path / "tree/_modules").mkdir(parents=True)
    (tmp_path / "tree/_modules/new.py").write_text("def f():\n    return 1\n")
    (tmp_path / "tree/t.jinja").write_text("{% load_yaml as y %}\na: 5\n{% endload %}{{ x }} {{ y.a }}")
    return local_runtime(
        {
            "id": "web1",
            "cachedir": str(tmp_path / "cache"),
            "extension_modules": str(tmp_path / "ext"),
            "file_roots": {"base": [str(tmp_path / "tree")]},
            "sdb_nothing": 1,
        },
        pillar={"a": 1},
    )


def asked(minion: Runtime, text: str, master: Any = None, events: Any = None) -> Any:
    ctx = minion.context if master is None else replace(minion.context, master=master)
    ctx = ctx if events is None else replace(ctx, events=events)
    served, function = minion.loader.function("modules", "own.evaluate", ctx)
    return served.bound(function, ctx)(text)


CACHE = "salt.cache.factory(__opts__)"

#: (expressions evaluated in order, value of the last one)
KEPT: list[tuple[list[str], Any]] = [
    ([f"{CACHE}.fetch('b', 'k')"], {}),
    ([f"{CACHE}.store('b/c', 'k', {{'x': [1]}})", f"{CACHE}.fetch('b/c', 'k')"], {"x": [1]}),
    ([f"{CACHE}.store('b', 'k', 1)", f"{CACHE}.store('b', 'j', 1)", f"{CACHE}.list('b')"], ["j", "k"]),
    (
        [f"{CACHE}.store('b', 'k', 1)", f"{CACHE}.contains('b', 'k'), {CACHE}.contains('b'), {CACHE}.contains('x')"],
        (1, 1, 0),
    ),
    (
        [f"{CACHE}.store('b', 'k', 1)", f"{CACHE}.flush('b', 'k'), {CACHE}.flush('b', 'k'), {CACHE}.flush('b')"],
        (1, 0, 1),
    ),
    ([f"{CACHE}.cache('b', 'k', lambda **_: [1, 2], loop_fun=str)", f"{CACHE}.fetch('b', 'k')"], ["1", "2"]),
    ([f"{CACHE}.store('b', 'k', 7)", f"{CACHE}.cache('b', 'k', lambda **_: 8)"], 7),
    ([f"{CACHE}.store('b', 'k', 7)", f"{CACHE}.cache('b', 'k', lambda **_: 8, expire=-1)"], 8),
    ([f"{CACHE}.updated('b', 'k')"], None),
    (
        ["opts_now['id'], salt_now['test.echo']('x'), 'test.ping' in salt_now, bool(__file_client__)"],
        ("web1", "x", True, True),
    ),
    (["__file_client__.value().cache_file('salt://t.jinja') != ''"], True),
    (["salt.output.nested.NestDisplay().display({'a': [1]}, 0, '', [])"], ["a:", "    - 1"]),
    (["salt.pillar.get_pillar(__opts__, {}, 'web1').compile_pillar()"], {"a": 1}),
    (["salt.pillar.get_pillar(__opts__, {}, 'web1', pillar_override={'z': 1}).compile_pillar()"], {"a": 1, "z": 1}),
    (["salt.utils.extmods.sync(__opts__, 'modules')"], (["modules.new"], True)),
    (["salt.utils.extmods.sync(__opts__, 'modules')", "salt.utils.extmods.sync(__opts__, 'modules')"], ([], False)),
    (["salt.utils.minions.CkMinions(__opts__).check_minions('web*')"], {"minions": ["web1"], "missing": []}),
    (["salt.utils.minions.CkMinions(__opts__).check_minions('db*', 'compound')"], {"minions": [], "missing": []}),
    (["salt.utils.minions.get_minion_data('web1', __opts__)"], ("web1", None, None)),
    (["rendered('t.jinja')"], "1 5"),
    (
        ["salt.states.git._fail({}, 'no', ['a', 'b'])"],
        {"result": False, "comment": "no\n\nChanges already made: a. b."},
    ),
    (["salt.states.git._fail({}, 'no', ['a'])"], {"result": False, "comment": "no\n\nChanges already made: a"}),
    (["salt.states.git._neutral_test({}, 'would')"], {"result": None, "comment": "would"}),
    (
        ["salt.states.git._uptodate({}, '/r', local_changes=True)['comment']"],
        "Repository /r is up-to-date, but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes.",
    ),
    (
        ["salt.states.git._already_cloned({}, '/r', 'main', ['c'])['comment']"],
        "Repository already exists at /r and is checked out to branch 'main'\n\nChanges made: c",
    ),
    (["salt.states.file._error({}, 'bad')"], {"result": False, "comment": "bad"}),
    (["salt.states.file._check_user('root', 'nosuch')"], "Group nosuch is not available"),
    (
        ["__salt__.missing_fun_string('no.such'), __salt__.missing_fun_string('test.ping')"],
        ("'no.such' is not available.", "'test.ping' is not available."),
    ),
]


@pytest.mark.parametrize(("expressions", "value"), KEPT)
def test_on_a_minion(minion: Runtime, expressions: list[str], value: Any) -> None:
    assert [asked(minion, each) for each in expressions][-1] == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (f"{CACHE}.store('../x', 'k', 1)", "The bank '../x' is not below the cache directory"),
        (f"{CACHE}.fetch('x', '../../k')", "The key '../../k' is not below its bank"),
        ("salt.state.HighState(__opts__)", "salt.state.HighState does not exist: run states with"),
        ("salt.utils.thin.gen_thin('/x')", "salt.utils.thin.gen_thin does not exist"),
        ("salt.client.ssh.state.prep_trans_tar()", "salt.client.ssh.state.prep_trans_tar does not exist"),
        ("salt.key.get_key(__opts__).list_keys()", "only a master manages keys"),
        ("salt.utils.event.get_event('master').get_event()", "receives the master's events on a master only"),
        ("salt.utils.minions.CkMinions(1).connected_ids()", "only a master knows which minions are connected"),
        ("salt.utils.minions.CkMinions(1).check_minions('x', 'range')", "unknown type of target 'range'"),
        ("salt.utils.master.MasterPillarUtil('*').get_minion_grains()", "cache.grains can be called on a master only"),
        ("salt.pillar.get_pillar(1, {}, 'db1').compile_pillar()", "a minion has only its own pillar, not that of db1"),
    ],
)
def test_what_a_minion_cannot_do(minion: Runtime, expression: str, says: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        asked(minion, expression)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("salt.key.get_key(__opts__).list_keys()", {"minions": ["web1"], "minions_pre": ["new"]}),
        ("salt.key.Key().all_keys()['local']", ["master.pem"]),
        ("salt.key.Key().accept('new')", {"minions": ["new"]}),
        ("salt.key.Key().delete_key('new')", {"minions": ["web1"], "minions_pre": ["new"]}),
        ("salt.utils.minions.get_minion_data('web1', 1)", ("web1", {"os": "Debian"}, {"a": 1})),
        ("salt.utils.minions.get_minion_data('db1', 1)", ("db1", None, None)),
        (
            "salt.utils.minions.CkMinions(1).check_minions('web1,gone', 'list')",
            {"minions": ["web1"], "missing": ["gone"]},
        ),
        ("salt.utils.minions.CkMinions(1).check_minions('os:Debian', 'grain')", {"minions": ["web1"], "missing": []}),
        ("salt.utils.minions.CkMinions(1).connected_ids()", {"web1"}),
        ("salt.utils.master.MasterPillarUtil('*').get_minion_grains()", {"web1": {"os": "Debian"}}),
        ("salt.utils.master.MasterPillarUtil('*').get_minion_pillar()", {"web1": {"a": 1}}),
        ("salt.utils.master.MasterPillarUtil('*').get_cached_mine_data()", {"web1": {"m": 2}}),
        ("salt.utils.master.get_running_jobs(1)", [{"jid": "2026", "fun": "test.ping"}]),
        ("salt.pillar.get_pillar(1, {}, 'db1').compile_pillar()", {"b": 2}),
        ("salt.utils.event.get_master_event(1).get_event(tag='b')", {"n": 1}),
        (
            "salt.utils.event.get_event('master').get_event(tag='three', match_type='endswith', full=True)",
            {"tag": "a/three", "data": {"n": 2}},
        ),
        ("list(salt.utils.event.MasterEvent().iter_events('a'))", [{"n": 0}, {"n": 2}]),
        ("salt.utils.event.MasterEvent().get_event(tag='c', wait=0.1)", None),
    ],
)
def test_on_a_master(minion: Runtime, expression: str, value: Any) -> None:
    assert asked(minion, expression, Master()) == value


def test_a_refused_request_is_an_error(minion: Runtime) -> None:
    with pytest.raises(CommandError, match=r"key\.reject failed: no such"):
        asked(minion, "salt.key.Key().reject('x')", Master())


def test_events_are_fired(minion: Runtime) -> None:
    sent = Sent()
    assert asked(minion, "salt.utils.event.get_event('minion').fire_master({'a': 1}, 'x')", None, sent) is True
    asked(minion, "salt.utils.event.fire_args(1, '2026', {'b': 1}, 'run')", None, sent)
    assert sent.fired == [("x", {"a": 1}), ("salt/run/2026/args", {"b": 1})]


def test_signatures(minion: Runtime, tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(pem, form)
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "k.pem").write_bytes(private)
    (tmp_path / "k.pub").write_bytes(public)
    for algorithm in ("salt.crypt.PKCS1v15_SHA1", "salt.crypt.PKCS1v15_SHA224"):
        sign = f"salt.crypt.sign_message('{tmp_path}/k.pem', 'text', algorithm={algorithm})"
        verify = f"salt.crypt.verify_signature('{tmp_path}/k.pub', WORD, {sign}, {algorithm})"
        assert asked(minion, verify.replace("WORD", "'text'")) is True
        assert asked(minion, verify.replace("WORD", "'other'")) is False
    master = Master()
    master.answers["key.key_str"] = {"minions": {"web1": public.decode()}}
    sign = f"salt.crypt.sign_message('{tmp_path}/k.pem', 'text')"
    known = f"salt.crypt.verify_signature('/etc/salt/pki/master/minions/web1', 'text', {sign})"
    assert asked(minion, known, master) is True
    with pytest.raises(FileNotFoundError):
        asked(minion, known)


def test_files_that_are_replaced(minion: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("zero")
    file.chmod(0o640)
    asked(minion, f"written({str(file)!r})")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("two", 0o640)
    kept = list((tmp_path / "cache/file_backup").rglob("file_*"))
    assert [each.read_text() for each in kept] == ["one"]
    assert "Timeout of 0.01 seconds exceeded" in asked(minion, f"locked({str(file)!r})")
    assert not (tmp_path / "file.w").exists()
