"""Users' own outputters in ``outputter_dirs``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.command.output import render
from saltern.kit.command.output.flags import Printer, add_output_flags
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.minion_options import MinionOptions

FILES = {
    "shout.py": """
def output(data, **kwargs):
    return f"{data} {kwargs['_retcode']} {__opts__['state_output']}".upper() + chr(10)
""",
    "renamed.py": """
__virtualname__ = 'csv'
def __virtual__():
    return __virtualname__
def output(data, **kwargs):
    return 'a;b'
""",
    "txt.py": """
import salt.utils.json
def output(data, **kwargs):
    return salt.utils.json.dumps(data)
""",
    "silent.py": "def output(data, **kwargs): return None",
    "broken.py": "import nosuchmodule",
    "fails.py": "def output(data, **kwargs): raise RuntimeError('no paper')",
    "gone.py": """
def __virtual__():
    return False, 'no printer'
def output(data, **kwargs):
    return 'x'
""",
    "odd.py": """
def __virtual__():
    return 1 / 0
def output(data, **kwargs):
    return 'x'
""",
    "none.py": "x = 1",
}

#: Outputter -> what is shown (None: nested, as if there were no such outputter), what the warning says.
SHOWN: dict[str, tuple[str | None, str]] = {
    "shout": ("{'WEB1': TRUE} 2 MIXED", ""),
    "csv": ("a;b", ""),
    "txt": ('{"web1": true}', ""),
    "silent": ("", ""),
    "json": ('{\n    "web1": true\n}', ""),
    "nested": ("web1:\n    True", ""),
    "renamed": (None, "Invalid outputter renamed"),
    "broken": (None, "nosuchmodule"),
    "fails": (None, "no paper"),
    "gone": (None, "Invalid outputter gone"),
    "odd": (None, "division by zero"),
    "none": (None, "Invalid outputter none"),
    "nosuch": (None, "Invalid outputter nosuch"),
}


@pytest.mark.parametrize("out", SHOWN)
def test_users_outputters(tmp_path: Path, printer: Callable[..., Any], out: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    options = printer(outputter_dirs=[str(tmp_path / "none"), str(tmp_path)], state_output="mixed").options
    told: list[str] = []
    shown = render({"web1": True}, options._replace(out=out, retcode=2), warn=told.append)
    expected, why = SHOWN[out]
    assert shown == ("web1:\n    True" if expected is None else expected)
    assert [why in line for line in told] == ([True] if why else [])


def test_outputters_that_were_fetched_from_the_tree(tmp_path: Path) -> None:
    (tmp_path / "ext/output").mkdir(parents=True)
    (tmp_path / "ext/output/fetched.py").write_text("def output(data, **kwargs): return 'fetched'\n")
    parser = argparse.ArgumentParser()
    add_output_flags(parser)
    for kind in (MasterOptions, MinionOptions):
        known = Printer(parser.parse_args([]), kind(extension_modules=str(tmp_path / "ext"))).options
        assert known.outputter_dirs == (str(tmp_path / "ext/output"),)
        assert render({}, known._replace(out="fetched")) == "fetched"
        none = Printer(parser.parse_args([]), kind(extension_modules=str(tmp_path / "none"))).options
        assert none.outputter_dirs == ()
