"""Real Salt's outputters, and ours with the same options."""

from __future__ import annotations

import argparse
import base64
import json
import os
import pickle
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.command.output import OutputOptions, render
from saltern.kit.command.output.flags import Printer, add_output_flags
from saltern.kit.config.master import StateOptions


@dataclass(frozen=True)
class Shown:
    """What Salt showed. ``raised``: what it died of, else empty."""

    text: str
    raised: str
    seconds: float


class Salt:
    """Real Salt's outputters, asked one case at a time."""

    def __init__(self, venv: Path) -> None:
        script = Path(__file__).with_name("salt_outputters.py")
        self._process = subprocess.Popen(
            [venv / "bin" / "python", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def shows(self, data: Any, outputter: str, options: Mapping[str, Any]) -> Shown:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(base64.b64encode(pickle.dumps((data, outputter, dict(options)))).decode() + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Shown(answer.get("text", ""), answer.get("raised", ""), answer["seconds"])

    def close(self) -> None:
        self._process.communicate(timeout=20)


@pytest.fixture(scope="package")
def salt(oracle: object) -> Iterator[Salt]:
    process = Salt(Path(os.environ["SALTERN_ORACLE"]))
    yield process
    process.close()


def printer(*flags: str, env: Mapping[str, str] | None = None, **options: Any) -> Printer:
    """A command's printer with these flags and options of the configuration."""
    parser = argparse.ArgumentParser()
    add_output_flags(parser)
    return Printer(parser.parse_args(flags), StateOptions(**options), env or {})


def output_options(options: Mapping[str, Any]) -> OutputOptions:
    """Salt's options, with ``retcode`` (the job's) and ``arg`` (what was published) among them, as ours."""
    plain = {name: value for name, value in options.items() if name not in ("retcode", "arg") and "." not in name}
    table = {name.removeprefix("out.table."): value for name, value in options.items() if "." in name}
    made = printer(**{"color": False, **plain}, out_table=table)
    made.heed(options.get("arg", ()))
    return made.options._replace(retcode=options.get("retcode", 0))


@pytest.fixture(name="printer", scope="session")
def printer_fixture() -> Callable[..., Printer]:
    return printer


@pytest.fixture(scope="session")
def ours() -> Callable[[Any, str, Mapping[str, Any]], str]:
    """Our text of (data, outputter, Salt's options)."""

    def show(data: Any, outputter: str, options: Mapping[str, Any]) -> str:
        return render(data, output_options(options)._replace(out=outputter), warn=lambda line: None)

    return show
