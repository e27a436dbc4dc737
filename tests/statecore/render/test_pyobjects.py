"""The renderer ``pyobjects``: SLS files in Python, in the style of public trees, beside real Salt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from statecore.model.errors import SlsError
from statecore.runtime.runtime import Runtime

from .conftest import Plant, fault_of

#: What others import: path -> text.
SHARED: dict[str, str | bytes] = {
    "samba/map.sls": """#!pyobjects
from salt.utils.pyobjects import StateFactory
Service = StateFactory('service')

class Samba(Map):
    merge = 'users'

    class Ubuntu:
        __grain__ = 'os'
        service = 'smbd'

    class RHEL:
        __match__ = 'RedHat'
        server = 'samba'
        service = 'smb'

    class Debian:
        server = 'samba'
        client = 'samba-client'
        service = 'samba'
        _hidden = 'x'

with Pkg.installed("samba", names=[Samba.server, Samba.client]):
    Service.running("samba", name=Samba.service)
""",
    "samba/derived.sls": "#!pyobjects\nfrom salt://samba/map.sls import Samba\n\nclass Custom(Samba):\n    own = 1\n",
    "helpers.sls": """#!pyobjects
import string

def site(name, **more):
    return File.managed('/etc/nginx/' + name, **more)

letters = string.ascii_lowercase[:3]
""",
}

#: Path -> text of an SLS that both render.
CASES: dict[str, str] = {
    "basic.sls": "#!pyobjects\nFile.managed('/tmp', user='root', group='root', mode='1777')\n",
    "nested.sls": """#!pyobjects
with Pkg.installed("nginx"):
    Service.running("nginx", enable=True)

    with Service("nginx", "watch_in"):
        File.managed("/etc/nginx/conf.d/a.conf", owner='root', source='salt://a.conf')
        with Cmd.run("true", unless=["test -e /x"]):
            File.directory("/srv/www", require=[Pkg("git"), {"user": "www"}])
""",
    "direct.sls": """#!pyobjects
Pkg.installed("nginx", require=Pkg("other"))
Service.running("nginx", watch=(File("a"), File("b")), listen_in=Cmd("c", "require"), use=File('t'))
""",
    "two-functions.sls": "#!pyobjects\nFile.managed('dup', name='/d')\nService.running('dup', name='s')\n",
    "camel.sls": "#!pyobjects\nSshKnownHosts.present('h', user='u')\nTest.nop('t')\nX509.pem_managed('p', text='')\n",
    "include.sls": "#!pyobjects\ninclude('http', 'ssh')\ninclude('db')\n",
    "extend.sls": """#!pyobjects
include('http')
Service.running(extend('apache'), watch=[File('/etc/file')])
File.managed(extend('apache'), name='/x')
""",
    "data.sls": """#!pyobjects
File.managed(pillar('name', 'x'), contents=[grains('os'), pillar('users:ann:uid'), pillar('no', 'default')],
             context={'r': config('renderer'), 'f': salt.test.echo('t'), 's': __sls__, 'i': __opts__['id']},
             mode=__salt__['test.echo']('m'), user=__grains__['os'], group=__pillar__['name'])
""",
    "opts-and-sls.sls": "#!pyobjects\nFile.directory(__sls__ + '_' + __opts__['id'], name='/tmp', mode='1777')\n",
    "loops.sls": """#!pyobjects
import os.path

def user(name, **data):
    with User.present(name, **data):
        File.directory(os.path.join('/home', name), user=name)

for name in sorted(pillar('users')):
    user(name, **pillar('users')[name])

class Sites:
    names = [n for n in ('a', 'b')]
    made = [File.managed('/s/' + n) for n in ('a', 'b')]
""",
    "map-module.sls": "#!pyobjects\nimport salt://samba/map.sls\n"
    "Pkg.removed('s', names=[map.Samba.server, map.Samba.client])\n",
    "map-name.sls": """#!pyobjects
# spaces on purpose
from   salt://samba/map.sls  import     Samba
Pkg.removed("s", names=[Samba.server, Samba.client, Samba.service], pkgs=[Samba.ann])
""",
    "map-alias.sls": "#!pyobjects\nfrom salt://samba/map.sls import Samba as Other\n"
    "Pkg.removed('s', names=[Other.server])\n",
    "map-derived.sls": "#!pyobjects\nfrom salt://samba/derived.sls import Custom, Custom as C\n"
    "Pkg.removed(Custom.server, version=C.own)\n",
    "imported-functions.sls": """#!pyobjects
from salt://helpers.sls import site, letters
for letter in letters:
    site(letter, mode='0644')
with Service.running('nginx'):
    site('inner')
""",
    "map-priority.sls": """#!pyobjects
class Data(Map):
    priority = ('os_family', 'os')
    class First:
        __grain__ = 'os'
        __match__ = 'Debian'
        a = 'os'
    class Debian:
        a = 'family'
        b = 'family'
File.managed(Data.a, name=Data.b)
""",
    "map-without-priority.sls": """#!pyobjects
class Data(Map):
    class First:
        __grain__ = 'os'
        __match__ = 'Debian'
        a = 'os'
    class Debian:
        a = 'family'
    class Other:
        __grain__ = 'missing'
        a = 'other'
File.managed(Data.a)
""",
    "map-of-a-list.sls": """#!pyobjects
class Data(Map):
    a = 'none'
    class Web:
        __grain__ = 'roles'
        __match__ = ['web']
        a = 'list'
File.managed(Data.a)
""",
    "salt-utils.sls": """#!pyobjects
from salt.utils.pyobjects import StateFactory, Registry, State, StateRequisite
Nothing = StateFactory('nothing_like_it')
Nothing.at_all('x', require=StateRequisite('require', 'file', 'y'))
State('z', 'file', 'managed', mode='1')
Some = StateFactory('some', valid_funcs=['fun'])
Some.fun(str(list(Registry.states)))
""",
    "jinja.sls": "#!jinja|pyobjects\n{% for n in (1, 2) %}\nFile.managed('{{ n }}')\n{% endfor %}\n",
    "no-states.sls": "#!pyobjects\npassword = 'x'\n",
}

#: Path -> text that fails in both, what ours says: (file:line, message, excerpt's line).
FAULTS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "unknown function": (
        "#!pyobjects\n\nFile.fail('/tmp')\n",
        (
            "a.sls:3",
            "The function 'fail' does not exist in the StateFactory for 'file' (InvalidFunction)",
            "File.fail('/tmp')",
        ),
    ),
    "unknown module": (
        "#!pyobjects\nNoneSuch.x('a')\n",
        ("a.sls:2", "name 'NoneSuch' is not defined (NameError)", "NoneSuch.x('a')"),
    ),
    "twice": (
        "#!pyobjects\nFile.managed('a')\nFile.managed('a')\n",
        ("a.sls:3", "A state with id ''a'', type ''file.managed'' exists (DuplicateState)", "File.managed('a')"),
    ),
    "no such file": (
        "#!pyobjects\nx = 1\nimport salt://none.sls\n",
        ("a.sls:3", "Could not find the file 'salt://none.sls' (ImportError)", "import salt://none.sls"),
    ),
    "no such name": (
        "#!pyobjects\nfrom salt://helpers.sls import nothing\n",
        (
            "a.sls:2",
            "'nothing' was not found in 'salt://helpers.sls' (ImportError)",
            "from salt://helpers.sls import nothing",
        ),
    ),
    "what an import imports": (
        "#!pyobjects\nfrom salt://samba/derived.sls import Custom\nFile.managed(Samba.server)\n",
        ("a.sls:3", "name 'Samba' is not defined (NameError)", "File.managed(Samba.server)"),
    ),
    "syntax": ("#!pyobjects\nx = (\n", ("a.sls:2", "'(' was never closed (SyntaxError)", "x = (")),
    "no function": (
        "#!pyobjects\nsalt.no.such()\n",
        ("a.sls:2", "there is no function no.such (AttributeError)", "salt.no.such()"),
    ),
}


def _sls(name: str) -> str:
    return name.removesuffix(".sls")


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, Any]:
    """Map of name to Salt's result."""
    files = {**SHARED, **CASES, **{f"faults/{at}.sls": text for at, (text, _) in enumerate(FAULTS.values())}}
    names = [*CASES, *(f"faults/{at}.sls" for at in range(len(FAULTS)))]
    return dict(zip(names, ask_salt(files, [["sls", name, _sls(name), {}] for name in names]), strict=True))


def _own(runtime: Runtime, name: str) -> Any:
    stage = runtime.contexts.run_context({})
    return json.loads(json.dumps(stage.tree._data(stage.tree.source(_sls(name), "base"))))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, salts: Mapping[str, Any], own_runtime: Callable[..., Runtime]) -> None:
    kind, value = salts[name]
    assert kind == "value", value
    own = _own(own_runtime({**SHARED, **CASES}), name)
    assert list(own.items()) == list(value.items())


@pytest.mark.oracle
@pytest.mark.parametrize("at", range(len(FAULTS)), ids=FAULTS)
def test_salt_fails_too(at: int, salts: Mapping[str, Any]) -> None:
    kind, value = salts[f"faults/{at}.sls"]
    assert kind == "error", value


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults(text: str, expected: tuple[str, str, str], own_runtime: Callable[..., Runtime]) -> None:
    runtime = own_runtime({**SHARED, "a.sls": text})
    tree = runtime.contexts.run_context({}).tree
    place, message, pointed = fault_of(lambda: tree.render("a", "base"))
    assert (place, message.partition("failed: ")[2].partition("; line")[0], pointed) == expected


def test_a_fault_in_an_imported_file(own_runtime: Callable[..., Runtime]) -> None:
    files = {"a.sls": "#!pyobjects\nimport salt://b.sls\n", "b.sls": "#!pyobjects\n\n1 / 0\n"}
    tree = own_runtime(files).contexts.run_context({}).tree
    assert fault_of(lambda: tree.render("a", "base"))[0] == "b.sls:3"


def test_files_that_import_each_other(own_runtime: Callable[..., Runtime]) -> None:
    files = {"a.sls": "#!pyobjects\nimport salt://b.sls\n", "b.sls": "#!pyobjects\nimport salt://b.sls\n"}
    tree = own_runtime(files).contexts.run_context({}).tree
    assert (
        "the files import each other: salt://b.sls imports salt://b.sls"
        in fault_of(lambda: tree.render("a", "base"))[1]
    )


def test_a_users_state_module(own_runtime: Callable[..., Runtime]) -> None:
    own = "def made(name, **kwargs):\n    return {'name': name, 'result': True, 'changes': {}, 'comment': 'mine'}\n"
    files = {
        "a.sls": "#!pyobjects\nMyTool.made('x', n=1)\n",
        "../extmods/states/tool_of_mine.py": f"__virtualname__ = 'my_tool'\ndef __virtual__():\n    return 'my_tool'\n{own}",
    }
    assert _own(own_runtime(files), "a.sls") == {"x": {"my_tool.made": [{"n": 1}]}}


def test_states_of_a_failed_rendering_are_forgotten(own_runtime: Callable[..., Runtime]) -> None:
    runtime = own_runtime(
        {"a.sls": "#!pyobjects\nFile.managed('a')\n1 / 0\n", "b.sls": "#!pyobjects\nFile.managed('b')\n"}
    )
    with pytest.raises(SlsError):
        _own(runtime, "a.sls")
    assert list(_own(runtime, "b.sls")) == ["b"]


def test_a_run(own_runtime: Callable[..., Runtime]) -> None:
    runtime = own_runtime({"a.sls": "#!pyobjects\nwith Test.succeed_with_changes('one'):\n    Test.nop('two')\n"})
    running = runtime.call("state.apply", ["a"], {}).value
    assert isinstance(running, dict)
    assert [(each["__id__"], each["result"]) for each in running.values()] == [("one", True), ("two", True)]


def test_without_state_modules(planted: Plant) -> None:
    """Trees without a loader (pillar, reactions) know the modules that are always there."""
    tree = planted({"a.sls": "#!pyobjects\nPkg.installed('x')\n"})
    assert tree.render("a", "base").high == {"x": {"pkg.installed": []}}
