"""Execution and state functions that run programs and read their output, as cases: the output is recorded.

A case (``cases/*.yaml``) tells what each command line of the host answers, the calls, and what came of them. Real Salt
plays the same cases (``salt_recorded.py``) with the same programs on its PATH. Keys of a case:

``programs``
    command line -> its output, or a map of ``stdout``, ``stderr``, ``retcode`` and ``after``, or a list of those. With
    ``after`` the answer holds once a command line that contains this text has run; of several that hold, the last counts. A
    line that ends in ``*`` stands for all that begin like it. Other command lines succeed and print nothing.
``has``
    programs of the host that no recorded line names
``have``
    files of the host: path -> content, ``/`` for a directory, ``-> target`` for a link, ``block`` for a block device
``tree``
    files of the state tree, which all cases of a file share: path -> content
``calls``
    functions: a name, or a map of name to a list (arguments by position) or a map (by name)
``gives``
    what each returned; ``raises`` and ``text`` of an error
``state``, ``args``, ``would``, ``does``, ``again``
    as the cases of ``states/played`` have them
``ran``
    command lines in the order in which ours ran them; for a state by phase
``left``
    what differs from ``have`` afterwards
``differs``
    why Salt's answer is another, and ``in`` what: ``gives`` or ``gives.0`` (one call of several), ``ran``, ``would.comment``,
    ``left``, a whole phase ...; that much is not compared. ``all: true`` stands for everything.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, StatecoreError
from statecore.model.ports import CommandResult
from tests import case_files
from tests.statecore.builtin.states.played import conftest as played

_HERE = Path(__file__).parent

#: Names of temporary files differ.
_TEMPORARY = re.compile(r"/tmp/[\w./-]+")


#: Our errors -> their names in Salt.
_ERRORS: Mapping[type[StatecoreError], str] = {
    InvocationError: "SaltInvocationError",
    CommandError: "CommandExecutionError",
}


#: The number of a process in a return, or in a text that quotes one.
_PROCESS = re.compile(r"""(["'])pid\1: \d+""")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One case, as in the file."""

    id: str
    calls: Sequence[Any] = ()
    state: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    programs: Mapping[str, Any] = field(default_factory=dict)
    has: Sequence[str] = ()
    have: Mapping[str, str] = field(default_factory=dict)
    tree: Mapping[str, str] = field(default_factory=dict)
    grains: Mapping[str, Any] = field(default_factory=dict)
    gives: Any = None
    would: Mapping[str, Any] | None = None
    does: Mapping[str, Any] | None = None
    again: Mapping[str, Any] | None = None
    ran: Any = None
    left: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, Any] = field(default_factory=dict)

    def possible(self) -> bool:
        """False for block devices, unless this process is root's."""
        return os.geteuid() == 0 or "block" not in self.have.values()

    def named(self) -> set[str]:
        """The host's programs that are played."""
        return {line.split()[0].rstrip("*") for line in self.programs} | set(self.has)

    def asked(self) -> list[tuple[str, list[Any], dict[str, Any]]]:
        """The calls as (function, arguments by position, arguments by name)."""
        found = []
        for call in self.calls:
            name, given = next(iter(call.items())) if isinstance(call, dict) else (call, [])
            found.append((name, given if isinstance(given, list) else [], given if isinstance(given, dict) else {}))
        return found

    def expected(self) -> dict[str, Any]:
        if self.calls:
            return {"gives": self.gives, "ran": self.ran or [], "left": dict(self.left)}
        phases = {"would": self.would, "does": self.does, "again": self.again or self.does}
        return {**phases, "ran": self.ran or {}, "left": dict(self.left)}

    def agreed(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What was told, without that in which ours and Salt's differ; commands and sets of Salt's in any order."""
        flat: dict[str, Any] = {"left": told["left"]}
        flat |= {f"gives.{at}": each for at, each in enumerate(told.get("gives") or ())}
        ran = told["ran"] if isinstance(told["ran"], dict) else {"": told["ran"]}
        flat |= {"ran": {phase: sorted({_unquoted(line) for line in lines}) for phase, lines in ran.items() if lines}}
        for phase in played.PHASES:
            flat |= {f"{phase}.{key}": value for key, value in (told.get(phase) or {}).items()}
            if isinstance(text := flat.get(f"{phase}.comment"), str):
                flat[f"{phase}.comment"] = text.split("\n")
        return {key: _sorted(value) for key, value in flat.items() if not self._excused(key)}

    def _excused(self, key: str) -> bool:
        return key in self.differs.get("in", ()) or key.partition(".")[0] in self.differs.get("in", ())


def _unquoted(line: str) -> str:
    return line.replace("'", "").replace('"', "")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def load(file: str = "*") -> list[Recorded]:
    """All cases, ids "file/case"."""
    return [
        Recorded(id=f"{path.stem}/{name}", **case)
        for path in sorted((_HERE / "cases").glob(f"{file}.yaml"))
        for name, case in case_files.read(path).items()
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recorded" in metafunc.fixturenames:
        cases = load()
        assert len(cases) > 5, "the case files are not found"
        if metafunc.function.__name__ == "test_case_is_as_salt_has_it":
            cases = [case for case in cases if not case.differs.get("all")]
        metafunc.parametrize("recorded", cases, ids=[case.id for case in cases])


def lay_out(case: Recorded, place: Path) -> dict[str, str]:
    """Makes the case's host, programs and answers below a directory; what the host has now."""
    (place / "bin").mkdir(parents=True)
    (place / "answers").mkdir()
    (place / "ran").touch()
    for name in case.named():
        (place / "bin" / name).symlink_to(_HERE / "program")
    rows = [(line, answer) for line, given in case.programs.items() for answer in _answers(given)]
    for at, (line, answer) in enumerate(reversed(rows)):
        directory = place / "answers" / f"{at:03}"
        directory.mkdir()
        texts = {"stdout": "", "stderr": "", "retcode": "0", **answer, "line": f"{line}\n"}
        for name, text in texts.items():
            (directory / name).write_text(str(text))
    host = place / "host"
    return played.lay_out(case, host)  # type: ignore[arg-type]  # of a case it takes only what the host has


def write_tree(case: Recorded, tree: Path) -> None:
    """Makes the case's state tree."""
    tree.mkdir(exist_ok=True)
    for name, text in case.tree.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def _answers(given: Any) -> list[dict[str, Any]]:
    if isinstance(given, list):
        return [answer for each in given for answer in _answers(each)]
    return [given if isinstance(given, dict) else {"stdout": given or ""}]


class RecordedHost(Host):
    """A mounted host whose programs are those of the case, and this machine's plain ones."""

    def __init__(self, place: Path) -> None:
        super().__init__(place / "host")
        self._place_of_case = place

    def mount_table(self) -> str:
        return (self.root / "proc/self/mountinfo").read_text()

    def which(self, program: str) -> str | None:
        name = program.rpartition("/")[2]
        return f"/usr/bin/{name}" if (self._place_of_case / "bin" / name).exists() else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        argv = ["/bin/sh", "-c", cmd] if isinstance(cmd, str) else [cmd[0].rpartition("/")[2], *cmd[1:]]
        own = {"PATH": f"{self._place_of_case}/bin:/usr/bin:/bin", "PLAYED": str(self._place_of_case)}
        given = options.get("stdin") or b""
        data = given.encode() if isinstance(given, str) else given
        # A shell looks for programs on the PATH that it is given, exec on ours.
        whole = ["/bin/sh", "-c", 'exec "$@"', "sh", *argv]
        errors = subprocess.STDOUT if options.get("merge_stderr") else subprocess.PIPE
        env = {**own, **(options.get("env") or {})} | own
        done = subprocess.run(whole, input=data, stdout=subprocess.PIPE, stderr=errors, env=env)
        return CommandResult(done.returncode, done.stdout.decode(), (done.stderr or b"").decode(), 1)


def play(case: Recorded, place: Path) -> dict[str, Any]:
    """What our functions tell of a case."""
    before = lay_out(case, place)
    host = RecordedHost(place)
    tree = place / "tree"
    write_tree(case, tree)

    def context(*, test: bool) -> Any:
        return played.context(case, host, tree, test=test)  # type: ignore[arg-type]

    if case.calls:
        ctx = context(test=False)
        gives = [_given(ctx, *call, place) for call in case.asked()]
        return {"gives": gives, "ran": _ran(place, 0), "left": played.changed(before, host.root)}
    told: dict[str, Any] = {"ran": {}}
    for phase, test in played.PHASES.items():
        known = len(_ran(place, 0))
        told[phase] = shown(_entry(context(test=test), case), place)
        told["ran"][phase] = _ran(place, known)
        if test:
            assert played.changed(before, host.root) == {}, "test mode has changed something"
    return told | {"left": played.changed(before, host.root)}


def _entry(ctx: Any, case: Recorded) -> dict[str, Any]:
    """What a state returns; an error as the engine tells it, without the place."""
    try:
        entry: dict[str, Any] = ctx.states[case.state](**{"name": "n", **case.args})
    except StatecoreError as error:
        return {"result": False, "changes": {}, "comment": f"An exception occurred in this state: {error}"}
    return entry


def _given(ctx: Any, name: str, args: list[Any], kwargs: dict[str, Any], place: Path) -> Any:
    try:
        return cleaned(ctx.call(name, *args, **kwargs), place)
    except StatecoreError as error:
        kind = next((salts for ours, salts in _ERRORS.items() if isinstance(error, ours)), type(error).__name__)
        return {"raises": kind, "text": cleaned(str(error), place)}


def shown(entry: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """result, changes and comment of a state's return with the host's own paths."""
    kept: dict[str, Any] = cleaned({key: entry[key] for key in ("result", "changes", "comment")}, place)
    text = kept["comment"]
    return kept | {"comment": text.rstrip() if isinstance(text, str) else text}


def cleaned(value: Any, place: Path) -> Any:
    """A return as JSON has it, with the host's own paths, and the numbers of processes left out."""
    text = json.dumps(value).replace(f"{place}/host", "").replace(f"{place}/bin", "/usr/bin").replace(str(place), "")
    return json.loads(_PROCESS.sub(r"\1pid\1: 1", _TEMPORARY.sub("/tmp/…", text)))


def _ran(place: Path, known: int) -> list[str]:
    lines = (place / "ran").read_text().splitlines()[known:]
    return [_TEMPORARY.sub("/tmp/…", line.replace(f"{place}/host", "").replace(f"{place}/", "/")) for line in lines]


@pytest.fixture(autouse=True)
def usual_umask():
    """The cases tell modes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


class Answers:
    """What Salt tells of a case. It is asked about all cases of a file at once, when somebody wants one of them."""

    def __init__(self, venv: Path, directory: Path) -> None:
        self._venv = venv
        self._directory = directory
        self._told: dict[str, dict[str, Any]] = {}

    def __getitem__(self, case: Recorded) -> dict[str, Any]:
        file = case.id.partition("/")[0]
        if file not in self._told:
            cases = [each for each in load(file) if not each.differs.get("all") and each.possible()]
            self._told[file] = ask_salt(self._venv, self._directory / file, cases)
        answer: dict[str, Any] = self._told[file][case.id]
        return answer


@pytest.fixture(scope="module")
def salts(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What Salt tells of cases: one process for each file."""
    return Answers(oracle.venv, tmp_path_factory.mktemp("salt"))


def ask_salt(venv: Path, directory: Path, cases: Sequence[Recorded]) -> dict[str, Any]:
    """Plays cases with real Salt."""
    places = {case.id: directory / str(at) for at, case in enumerate(cases)}
    (directory / "bin").mkdir(parents=True)
    # Which modules there are is decided once, when they are loaded.
    for name in sorted({name for case in cases for name in case.named()}):
        (directory / "bin" / name).symlink_to(_HERE / "program")
    before = {case.id: lay_out(case, places[case.id]) for case in cases}
    for place in places.values():
        (place / "bin/su").symlink_to(_HERE / "su")
    (directory / "tree").mkdir()
    for case in cases:
        write_tree(case, directory / "tree")
    asked = {
        "directory": str(directory),
        "grains": {**played.GRAINS, **(cases[0].grains if cases else {})},
        "phases": played.PHASES,
        "cases": [[case.asked(), case.state, case.args, str(places[case.id])] for case in cases],
    }
    done = subprocess.run(
        [venv / "bin/python", _HERE / "salt_recorded.py"],
        input=json.dumps(asked),
        text=True,
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    told = {}
    for case, answer in zip(cases, json.loads(done.stdout.splitlines()[-1]), strict=True):
        place = places[case.id]
        told[case.id] = answer | {"left": played.changed(before[case.id], place / "host")}
        if case.calls:
            told[case.id] |= {"gives": cleaned(answer["gives"], place), "ran": _ran(place, 0)}
        else:
            counts = answer["ran"]
            lines, start, by_phase = _ran(place, 0), 0, {}
            for phase, end in counts.items():
                by_phase[phase], start = lines[start:end], end
            told[case.id] |= {phase: shown(answer[phase], place) for phase in played.PHASES} | {"ran": by_phase}
    return told
