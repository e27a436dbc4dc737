"""Modules in Salt's style: dunders, __virtual__, aliases, imports of ``salt``, reasons for what cannot be used."""

from __future__ import annotations

import sys

import pytest

from statecore.compile.graph import link
from statecore.engine import run
from statecore.model.errors import CommandError, InvocationError, NotAvailable

#: The example of the seed "State Modules", as printed.
MY_CUSTOM_STATE = """
import salt.exceptions

def enforce_custom_thing(name, foo, bar=True):
    \'\'\'
    Enforce the state of a custom thing

    This state module does a custom thing. It calls out to the execution module
    ``my_custom_module`` in order to check the current system and perform any
    needed changes.

    name
        The thing to do something to
    foo
        A required argument
    bar : True
        An argument with a default value
    \'\'\'
    ret = {
        'name': name,
        'changes': {},
        'result': False,
        'comment': '',
        'pchanges': {},
        }

    # Start with basic error-checking. Do all the passed parameters make sense
    # and agree with each-other?
    if bar == True and foo.startswith('Foo'):
        raise salt.exceptions.SaltInvocationError(
            'Argument "foo" cannot start with "Foo" if argument "bar" is True.')

    # Check the current state of the system. Does anything need to change?
    current_state = __salt__['my_custom_module.current_state'](name)

    if current_state == foo:
        ret['result'] = True
        ret['comment'] = 'System already in the correct state'
        return ret

    # The state of the system does need to be changed. Check if we're running
    # in ``test=true`` mode.
    if __opts__['test'] == True:
        ret['comment'] = 'The state of "{0}" will be changed.'.format(name)
        ret['pchanges'] = {
            'old': current_state,
            'new': 'Description, diff, whatever of the new state',
        }

        # Return ``None`` when running with ``test=true``.
        ret['result'] = None

        return ret

    # Finally, make the actual change and return the result.
    new_state = __salt__['my_custom_module.change_state'](name, foo)

    ret['comment'] = 'The state of "{0}" was changed!'.format(name)

    ret['changes'] = {
        'old': current_state,
        'new': new_state,
    }

    ret['result'] = True

    return ret
"""

MY_CUSTOM_MODULE = """
def current_state(name):
    return __context__.get(name, "unset")


def change_state(name, value):
    __context__[name] = value
    return value
"""


def call_seed(shelf, *, test=False, times=1, **arguments):
    shelf.write("states/my_custom_state.py", MY_CUSTOM_STATE)
    shelf.write("modules/my_custom_module.py", MY_CUSTOM_MODULE)
    low = {
        "state": "my_custom_state",
        "fun": "enforce_custom_thing",
        "name": "a_value",
        "__id__": "human_friendly_state_id",
        "__sls__": "my_custom_state",
        **arguments,
    }
    ctx = shelf.context(test)
    for _ in range(times):
        (entry,) = run(link([dict(low)]), ctx, shelf.loader).values()
    return entry


def test_the_seeds_example_changes_the_system(shelf):
    entry = call_seed(shelf, foo="Foo", bar=False)
    assert (entry["result"], entry["comment"]) == (True, 'The state of "a_value" was changed!')
    assert entry["changes"] == {"old": "unset", "new": "Foo"}


def test_the_seeds_example_the_second_time(shelf):
    assert call_seed(shelf, foo="x", times=2)["comment"] == "System already in the correct state"


def test_the_seeds_example_in_test_mode(shelf):
    entry = call_seed(shelf, test=True, foo="x")
    assert (entry["result"], entry["changes"]) == (None, {})
    assert entry["pchanges"]["old"] == "unset"


def test_the_seeds_example_refuses(shelf):
    entry = call_seed(shelf, foo="Foo")
    assert entry["result"] is False
    assert 'Argument "foo" cannot start with "Foo" if argument "bar" is True.' in entry["comment"]


def test_the_seeds_example_without_its_argument(shelf):
    entry = call_seed(shelf)
    assert "Missing parameter foo for state my_custom_state.enforce_custom_thing" in entry["comment"]


def test_dunders(shelf):
    shelf.write(
        "modules/own.py",
        "def all():\n"
        "    return [__grains__['os'], __pillar__['key'], __opts__['id'], __opts__['test'], __salt__['test.echo']('x'),\n"
        "            __context__ is not None, __opts__['saltenv'], __opts__['grains']['os']]\n",
    )
    assert shelf.context(test=True).call("own.all") == ["Debian", "value", "m1", True, "x", True, "base", "Debian"]


def test_two_contexts_do_not_see_each_others_dunders(shelf):
    shelf.write(
        "modules/own.py",
        "def mode():\n    return __opts__['test']\ndef nested(other):\n    before = __opts__['test']\n"
        "    return [before, other(), __opts__['test']]\n",
    )
    real, check = shelf.context(), shelf.context(test=True)
    assert real.call("own.nested", lambda: check.call("own.mode")) == [False, True, False]


@pytest.mark.parametrize(
    ("virtual", "reason"),
    [
        ("False", "'own' __virtual__ returned False"),
        ("(False, 'no frobnicator')", "'own' __virtual__ returned False: no frobnicator"),
        ("None", "'own' __virtual__ returned False"),
        ("1 / 0", "__virtual__ failed: ZeroDivisionError: division by zero (own.py:2)"),
    ],
)
def test_a_virtual_that_says_no_gives_its_reason(shelf, virtual, reason):
    shelf.write("modules/own.py", f"def __virtual__():\n    return {virtual}\ndef f():\n    pass\n")
    with pytest.raises(NotAvailable) as caught:
        shelf.context().call("own.f")
    assert str(caught.value) == f"'own.f' is not available. Reason: {reason}"


@pytest.mark.parametrize(
    "text",
    [
        "def __virtual__(): return 'thing'\ndef f(): return 1\n",
        "__virtualname__ = 'thing'\ndef __virtual__(): return True\ndef f(): return 1\n",
        "__virtualname__ = 'thing'\ndef __virtual__(): return __virtualname__\ndef f(): return 1\n",
    ],
)
def test_virtual_names(shelf, text):
    shelf.write("modules/something.py", text)
    ctx = shelf.context()
    assert ctx.call("thing.f") == 1
    assert "something.f" not in ctx.functions


def test_a_users_module_replaces_a_built_in(shelf):
    shelf.write("modules/test.py", "def ping(): return 'mine'\n")
    ctx = shelf.context()
    assert ctx.call("test.ping") == "mine"
    assert "test.echo" not in ctx.functions


def test_by_virtual_name_too(shelf):
    shelf.write("modules/zz.py", "def __virtual__(): return 'test'\ndef ping(): return 'mine'\n")
    assert shelf.context().call("test.ping") == "mine"


def test_one_that_is_not_usable_does_not_replace(shelf):
    shelf.write("modules/test.py", "def __virtual__(): return False\ndef ping(): return 'mine'\n")
    assert shelf.context().call("test.ping") is True


def test_aliases_and_what_is_a_function(shelf):
    shelf.write(
        "modules/own.py",
        "import os\nfrom os.path import join\n__func_alias__ = {'list_': 'list'}\n__outputter__ = {'list_': 'table'}\n"
        "def list_(): return 1\ndef _private(): pass\nclass Thing: pass\nVALUE = 3\n",
    )
    ctx = shelf.context()
    served = shelf.loader.module("modules", "own", ctx)
    assert sorted(served.functions) == ["join", "list"]
    assert served.outputters == {"list": "table"}


def test_all_and_load_limit_what_is_served(shelf):
    shelf.write("modules/own.py", "__all__ = ['a']\ndef a(): pass\ndef b(): pass\n")
    assert list(shelf.loader.module("modules", "own", shelf.context()).functions) == ["a"]


def test_init_is_called_with_the_options(shelf):
    shelf.write("modules/own.py", "seen = []\ndef __init__(opts): seen.append(opts['id'])\ndef f(): return seen\n")
    assert shelf.context().call("own.f") == ["m1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library' (own.py:1)"),
        ("x = 1\ndef f(:\n", "(own.py:2)"),
        ("import salt.cloud.clouds\n", "'salt.cloud.clouds' is not part of the compatibility package for Salt modules"),
    ],
)
def test_a_file_that_does_not_import_says_why(shelf, text, reason):
    shelf.write("modules/own.py", text)
    with pytest.raises(NotAvailable) as caught:
        shelf.context().call("own.f")
    assert reason in str(caught.value)
    assert "own.py failed to import" in str(caught.value)


@pytest.mark.parametrize(
    "imports",
    [
        "import salt.exceptions\nE = salt.exceptions.CommandExecutionError",
        "import salt.exceptions as errors\nE = errors.CommandExecutionError",
        "from salt.exceptions import CommandExecutionError as E",
        "from salt import exceptions\nE = exceptions.CommandExecutionError",
    ],
)
def test_ways_to_import_salt(shelf, imports):
    shelf.write("modules/own.py", f"{imports}\ndef f(): raise E('no')\n")
    with pytest.raises(CommandError, match="no"):
        shelf.context().call("own.f")


def test_salts_exceptions_are_ours(shelf):
    shelf.write(
        "modules/own.py",
        "from salt.exceptions import SaltInvocationError\n"
        "def f():\n    try:\n        __salt__['test.fib'](-1)\n"
        "    except SaltInvocationError as error:\n        return str(error)\n",
    )
    assert shelf.context().call("own.f") == "Negative number is not allowed!"
    assert issubclass(InvocationError, Exception)


@pytest.fixture
def nothing_of_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    """No module of a package ``salt`` is imported, whatever another test of this process has left."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "salt"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("nothing_of_salt")
def test_nobody_else_sees_the_compatibility_package(shelf):
    shelf.write("modules/own.py", "import salt.exceptions\ndef f(): return salt.__name__\n")
    shelf.context().call("own.f")
    assert "salt" not in sys.modules
    assert "salt.exceptions" not in sys.modules


def test_missing_functions_are_key_errors_to_them(shelf):
    shelf.write(
        "modules/own.py",
        "def f():\n    try:\n        __salt__['no.such']\n    except KeyError as error:\n        return str(error)\n"
        "def g(): return 'no.such' in __salt__, __salt__.get('no.such', 3), 'test.ping' in __salt__\n",
    )
    ctx = shelf.context()
    assert ctx.call("own.f") == "'no.such' is not available."
    assert ctx.call("own.g") == (False, 3, True)


def test_a_refresh_sees_new_and_changed_files(shelf):
    ctx = shelf.context()
    assert "own.f" not in ctx.functions
    shelf.write("modules/own.py", "def f(): return 1\n")
    shelf.loader.refresh()
    assert ctx.call("own.f") == 1
    shelf.write("modules/own.py", "def f(): return 2\n")
    shelf.loader.refresh()
    assert ctx.call("own.f") == 2


def test_a_retry_asks_only_what_was_not_usable(shelf):
    shelf.write("modules/own.py", "import os\ndef __virtual__(): return 'OWN_OK' in os.environ\ndef f(): return 1\n")
    ctx = shelf.context()
    assert "own.f" not in ctx.functions
    shelf.write("modules/own.py", "def f(): return 1\n")
    assert "own.f" not in ctx.functions
    shelf.loader.retry()
    assert ctx.call("own.f") == 1


def test_packages_are_modules_too(shelf):
    shelf.write("modules/own/__init__.py", "from .inner import VALUE\ndef f(): return VALUE\n")
    shelf.write("modules/own/inner.py", "VALUE = 5\n")
    assert shelf.context().call("own.f") == 5


def test_native_states_are_called_by_users_states(shelf):
    shelf.write("states/own.py", "def f(name): return __states__['test.succeed_with_changes'](name=name)\n")
    low = {"state": "own", "fun": "f", "name": "n", "__id__": "n", "__sls__": "s"}
    (entry,) = run(link([low]), shelf.context(), shelf.loader).values()
    assert (entry["name"], entry["result"], entry["comment"]) == ("n", True, "Success!")


def test_dataclasses_in_a_users_module(shelf):
    shelf.write(
        "modules/own.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
        "def f(): return P(3).x\n",
    )
    assert shelf.context().call("own.f") == 3


def test_a_virtual_name_adds_to_a_built_in_module(shelf):
    shelf.write("modules/zz.py", "def __virtual__(): return 'test'\ndef ping(): return 'mine'\ndef fresh(): return 1\n")
    ctx = shelf.context()
    assert [ctx.call("test.ping"), ctx.call("test.fresh"), ctx.call("test.echo", 2)] == ["mine", 1, 2]
    assert {"test.fresh", "test.echo"} <= set(shelf.loader.names("modules", ctx))


def test_a_virtualname_alone_names_nothing(shelf):
    """As in Salt: without __virtual__ the file's name counts."""
    shelf.write("modules/own.py", "__virtualname__ = 'thing'\ndef f(): return 1\n")
    ctx = shelf.context()
    assert ctx.call("own.f") == 1
    assert "thing.f" not in ctx.functions


@pytest.mark.usefixtures("nothing_of_salt")
def test_inner_files_of_a_package_import_salt_too(shelf):
    shelf.write("modules/own/__init__.py", "from .inner import joined\ndef f(): return joined()\n")
    shelf.write("modules/own/inner.py", "import salt.utils.path\ndef joined(): return salt.utils.path.join('a', 'b')\n")
    assert shelf.context().call("own.f") == "a/b"
    assert "salt" not in sys.modules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import salt.minion",
            "'salt.minion' is not part of the compatibility package for Salt modules: modules run inside",
        ),
        ("import salt.utils.schedule", "the minion runs its schedule itself"),
        ("import salt.utils.files\nsalt.utils.files.nothing", "'salt.utils.files.nothing' is not part of"),
        ("from salt.utils.data import nothing", "nothing"),
    ],
)
def test_what_of_salt_is_not_there_says_what_to_use(shelf, text, reason):
    shelf.write("modules/own.py", f"{text}\ndef f(): return 1\n")
    with pytest.raises(NotAvailable) as caught:
        shelf.context().call("own.f")
    assert reason in str(caught.value)


def test_utils_see_the_context_and_each_other(shelf):
    shelf.write(
        "utils/tool.py", "def f(): return [__grains__['os'], __salt__['test.echo'](1), __utils__['other.g']()]\n"
    )
    shelf.write("utils/other.py", "def g(): return __opts__['id']\n")
    shelf.write("modules/own.py", "def f(): return __utils__['tool.f'](), 'no.such' in __utils__\n")
    assert shelf.context().call("own.f") == (["Debian", 1, "m1"], False)


def test_a_retry_sees_a_library_that_came(shelf, monkeypatch):
    """As after pkg.installed and pip.installed: what a module found missing when it was imported is looked for again."""
    shelf.write("lib/brought_library.py", "VALUE = 5\n")
    shelf.write(
        "modules/own.py",
        "try:\n    import brought_library\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
        "def __virtual__(): return HAS, 'brought_library is not installed'\ndef f(): return brought_library.VALUE\n",
    )
    ctx = shelf.context()
    with pytest.raises(NotAvailable, match="brought_library is not installed"):
        ctx.call("own.f")
    monkeypatch.syspath_prepend(str(shelf.directory / "lib"))
    shelf.loader.retry()
    assert ctx.call("own.f") == 5
    monkeypatch.delitem(sys.modules, "brought_library")


def test_the_context_of_execution_modules_is_reached_through_a_function(shelf):
    text = """import sys
def f():
    __salt__["other.keep"]("x")
    return sys.modules[__salt__["test.ping"].__module__].__context__.pop("kept", None)
"""
    shelf.write("modules/own.py", text)
    shelf.write("modules/other.py", "def keep(value):\n    __context__['kept'] = value\n")
    assert shelf.context().call("own.f") == "x"
