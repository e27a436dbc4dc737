"""``import salt`` in libraries that users' modules import, each case in a Python process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from statecore.model.salt_package import SaltFinder

#: A minion over the directory sys.argv[1], whose function ``own.f`` is called; its result or error is printed.
PROGRAM = """
import sys
from statecore.model.salt_package import SaltFinder
from statecore.runtime.runtime import local_runtime

runtime = local_runtime({"extension_modules": sys.argv[1] + "/ext", "file_roots": {"base": [sys.argv[1] + "/tree"]}, "id": "web1"})
runtime.call("test.ping")
assert "salt" not in sys.modules
assert not any(isinstance(finder, SaltFinder) for finder in sys.meta_path)
print(runtime.call("own.f").value)
"""

LIBRARY = "import salt.utils.stringutils\nfrom salt.exceptions import CommandExecutionError\nimport salt\n"
INSTALLED = "__version__ = '3006.1'\n"

#: (name, library's text, text of ``own.f``'s module, what it prints)
CASES = [
    (
        "the library has the module's own exceptions and functions",
        LIBRARY,
        "import lib, salt.exceptions, salt.utils.stringutils, sys\n"
        "def f():\n"
        "    ours = sys.modules['statecore.loader.compat.exceptions'].CommandExecutionError\n"
        "    return [lib.CommandExecutionError is salt.exceptions.CommandExecutionError is ours,\n"
        "            lib.salt.utils.stringutils.to_str(b'a'), lib.salt is salt]\n",
        "[True, 'a', True]",
    ),
    (
        "a function of the library that needs the running module's minion",
        "import salt.config\nimport salt.modules.cmdmod\n"
        "def name():\n    return salt.config.get_id()[0], salt.modules.cmdmod.run('echo 1')\n",
        "import lib\ndef f():\n    return lib.name()\n",
        "('web1', '1')",
    ),
    (
        "import_module in a module",
        "",
        "import importlib\nM = importlib.import_module('salt.utils.path')\ndef f():\n    return M.join('/a', 'b')\n",
        "/a/b",
    ),
    (
        "modules keep their own names",
        LIBRARY,
        "import lib, sys\n"
        "def f():\n    return sys.modules['salt.exceptions'].__spec__.name, sys.modules['salt'].__name__\n",
        "('statecore.loader.compat.exceptions', 'statecore.loader.compat')",
    ),
    (
        "loggers have Salt's levels",
        "import logging\nlog = logging.getLogger('lib')\nlog.setLevel(1)\n",
        "import lib, logging\n"
        "def f():\n"
        "    seen = []\n"
        "    lib.log.addFilter(lambda row: seen.append((row.levelname, row.funcName)))\n"
        "    lib.log.trace('a %s', 1), lib.log.garbage('b'), lib.log.profile('c')\n"
        "    return seen\n",
        "[('TRACE', 'f'), ('GARBAGE', 'f'), ('PROFILE', 'f')]",
    ),
    (
        "a missing module with its reason",
        "import salt.cloud\n",
        "import lib\ndef f():\n    return 1\n",
        "'own.f' is not available. Reason: {ext}/modules/own.py failed to import: ModuleNotFoundError: 'salt.cloud' is not "
        "part of the compatibility package for Salt modules: Saltern has no cloud providers (own.py:1)",
    ),
    (
        "a library that can do without",
        "try:\n    import salt.nosuch\nexcept ImportError:\n    HERE = False\n",
        "import lib\ndef f():\n    return lib.HERE\n",
        "False",
    ),
]


def printed(directory: Path, library: str, module: str) -> str:
    (directory / "site").mkdir(exist_ok=True)
    (directory / "site/lib.py").write_text(library)
    (directory / "ext/modules").mkdir(parents=True)
    (directory / "ext/modules/own.py").write_text(module)
    path = os.pathsep.join([str(directory / "site"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(directory)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize(("name", "library", "module", "says"), CASES)
def test_a_library(tmp_path: Path, name: str, library: str, module: str, says: str) -> None:
    assert printed(tmp_path, library, module) == says.format(ext=tmp_path / "ext"), name


def test_an_installed_salt_stays_the_libraries_own(tmp_path: Path) -> None:
    (tmp_path / "site/salt").mkdir(parents=True)
    (tmp_path / "site/salt/__init__.py").write_text(INSTALLED)
    module = "import lib, salt\ndef f():\n    return lib.salt.__version__, salt.__version__\n"
    assert printed(tmp_path, "import salt\n", module) == "('3006.1', '3008.3')"


def test_a_module_that_an_installed_salt_lacks_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "site/salt").mkdir(parents=True)
    (tmp_path / "site/salt/__init__.py").write_text(INSTALLED)
    says = printed(tmp_path, "import salt.exceptions\n", "import lib\ndef f():\n    return 1\n")
    assert "ModuleNotFoundError: No module named 'salt.exceptions'" in says


def test_an_sls_in_python(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.sls").write_text(
        "#!py\nimport salt.utils.stringutils\n"
        "def run():\n    return {salt.utils.stringutils.to_str(b'one'): {'test.nop': []}}\n"
    )
    module = "def f():\n    return list(__salt__['state.show_sls']('a'))\n"
    assert printed(tmp_path, "", module) == "['one']"


def test_other_modules_are_left_to_python() -> None:
    assert SaltFinder().find_spec("saltern", None) is None
