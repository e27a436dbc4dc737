"""Finding 38.10: a stranger's key is accepted by a list that was never written for it (autosign_file, autosign_grains_dir)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest

from saltern.mworker import sign_in, sign_in_lists
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis


class Case(NamedTuple):
    """Name and text of a file in ``autosign_grains_dir``, the grains that a stranger sends, and the file's mode."""

    name: str
    text: str | bytes
    grains: dict[str, Any]
    mode: int = 0o644


#: Attack -> what is in the directory and what the stranger sends.
GRAINS = {
    "an empty value and an empty line": Case("uuid", "first\n\nsecond\n", {"uuid": ""}),
    "an empty value and an empty file": Case("uuid", "\n", {"uuid": ""}),
    "an empty value and a line of spaces": Case("uuid", "   \n", {"uuid": ""}),
    "a value of spaces and an empty line": Case("uuid", "first\n\n", {"uuid": " "}),
    "no value, and a line None": Case("uuid", "None\n", {"uuid": None}),
    "a list by its text": Case("uuid", "['first']\n", {"uuid": ["first"]}),
    "an empty list by its text": Case("uuid", "[]\n", {"uuid": []}),
    "a map by its text": Case("uuid", "{}\n", {"uuid": {}}),
    "bytes by their text": Case("uuid", "b'first'\n", {"uuid": b"first"}),
    "a comment": Case("uuid", "#first\n", {"uuid": "#first"}),
    "a comment without its mark": Case("uuid", "#first\n", {"uuid": "first"}),
    "a part of a line that U+2028 divides": Case("uuid", "denied\u2028first\n", {"uuid": "first"}),
    "a part of a line that U+0085 divides": Case("uuid", "denied\u0085first\n", {"uuid": "first"}),
    "a part of a comment that a form feed divides": Case("uuid", "# old:\x0cfirst\n", {"uuid": "first"}),
    "a part of a comment that a file separator divides": Case("uuid", "# old:\x1cfirst\n", {"uuid": "first"}),
    "a control character": Case("uuid", "a\x07b\n", {"uuid": "a\x07b"}),
    "an escape sequence": Case("uuid", "\x1b[2Jb\n", {"uuid": "\x1b[2Jb"}),
    "a very long value": Case("uuid", "x" * 5000 + "\n", {"uuid": "x" * 5000}),
    "a glob of the list": Case("uuid", "*\n", {"uuid": "anything"}),
    "an expression of the list": Case("uuid", ".*\n", {"uuid": "anything"}),
    "an editor's copy": Case("uuid~", "gone\n", {"uuid~": "gone"}),
    "an editor's swap file": Case("uuid.swp", "gone\n", {"uuid.swp": "gone"}),
    "a hidden swap file": Case(".uuid.swp", "gone\n", {".uuid.swp": "gone"}),
    "an editor's lock": Case("#uuid#", "gone\n", {"#uuid#": "gone"}),
    "a backup": Case("uuid.bak", "gone\n", {"uuid.bak": "gone"}),
    "a backup in capitals": Case("uuid.BAK", "gone\n", {"uuid.BAK": "gone"}),
    "what patch left": Case("uuid.orig", "gone\n", {"uuid.orig": "gone"}),
    "what patch refused": Case("uuid.rej", "gone\n", {"uuid.rej": "gone"}),
    "what rpm left": Case("uuid.rpmsave", "gone\n", {"uuid.rpmsave": "gone"}),
    "what dpkg left": Case("uuid.dpkg-old", "gone\n", {"uuid.dpkg-old": "gone"}),
    "what ucf left": Case("uuid.ucf-dist", "gone\n", {"uuid.ucf-dist": "gone"}),
    "half a download": Case("uuid.part", "gone\n", {"uuid.part": "gone"}),
    "a README": Case("README", "One line for each machine.\n", {"README": "One line for each machine."}),
    "a readme.md": Case("readme.md", "One line for each machine.\n", {"readme.md": "One line for each machine."}),
    "a LICENSE": Case("LICENSE", "All rights reserved.\n", {"LICENSE": "All rights reserved."}),
    "a list that everybody may write": Case("uuid", "first\n", {"uuid": "first"}, 0o646),
    "a list that its group may write": Case("uuid", "first\n", {"uuid": "first"}, 0o664),
    "a list outside of the directory": Case("../uuid", "first\n", {"../uuid": "first"}),
    "a list in a subdirectory": Case("old/uuid", "first\n", {"old/uuid": "first"}),
    "a list that is no UTF-8": Case("uuid", b"\xff\xfe\nfirst\n", {"uuid": "first"}),
}


def signed_in(worker: Worker, grains: dict[str, Any], name: str = "web1") -> str:
    """The state of a stranger's key after its sign-in."""
    load = {"cmd": "_auth", "id": name, "pub": worker.keys[0].public.pem, "nonce": "0" * 32, "autosign_grains": grains}
    worker.handler.answer(b"minion", "", msgpack.packb({"enc": "clear", "version": 3, "load": load}))
    return worker.store.minion_keys.state_of(name)[0]


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    made = tmp_path / "grains"
    made.mkdir()
    return made


@pytest.mark.parametrize("case", GRAINS.values(), ids=list(GRAINS))
def test_no_grain_accepts_a_stranger(new_worker: Callable[..., Worker], lists: Path, case: Case) -> None:
    place = lists / case.name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    place.chmod(case.mode)
    assert signed_in(new_worker(autosign_grains_dir=str(lists)), case.grains) == "pending"


@pytest.mark.parametrize("option", ["autosign_grains_dir", "autosign_file"])
def test_a_named_pipe_holds_no_worker(new_worker: Callable[..., Worker], lists: Path, option: str) -> None:
    os.mkfifo(lists / "uuid")
    place = lists if option == "autosign_grains_dir" else lists / "uuid"
    assert signed_in(new_worker(**{option: str(place)}), {"uuid": "first"}) == "pending"


def test_many_grains_cost_no_look_at_the_disk_each(new_worker: Callable[..., Worker], lists: Path) -> None:
    opened: list[object] = []
    worker = new_worker(autosign_grains_dir=str(lists))
    with pytest.MonkeyPatch.context() as patch:
        real = os.open
        patch.setattr(os, "open", lambda path, *more, **named: opened.append(path) or real(path, *more, **named))
        assert signed_in(worker, {f"g{number}": "x" for number in range(4000)}) == "pending"
    assert not opened


#: Attack -> (text of autosign_file, its mode, the stranger's id).
FILES = {
    "a file that everybody may write": ("web1\n", 0o646, "web1"),
    "a file that its group may write": ("web1\n", 0o660, "web1"),
    "a comment": ("# web1\n#web1\n", 0o600, "web1"),
    "a part of a comment that U+2028 divides": ("# gone:\u2028web1\n", 0o600, "web1"),
    "a part of a comment that a vertical tab divides": ("# gone:\x0bweb1\n", 0o600, "web1"),
    "a prefix of a line": ("web\n", 0o600, "web1"),
    "alternatives that Salt anchors on one side each": ("db1|web\n", 0o600, "web1"),
    "a file that is no UTF-8": (b"\xff\nweb1\n", 0o600, "web1"),
}


@pytest.mark.parametrize(("text", "mode", "name"), FILES.values(), ids=list(FILES))
def test_no_file_accepts_a_stranger(
    new_worker: Callable[..., Worker], tmp_path: Path, text: str | bytes, mode: int, name: str
) -> None:
    place = tmp_path / "autosign"
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    place.chmod(mode)
    assert signed_in(new_worker(autosign_file=str(place)), {}, name) == "pending"


#: Line that backtracks in the module ``re`` -> an id on which it does.
SLOW = {
    r"(a+)+$": "a" * 60 + "!",
    r"(\w+\.?)+$": "a" * 60 + "!",
    r"([a-z]+)*x": "a" * 60 + "!",
    r"(a|aa)+$": "a" * 60 + "!",
    r"(.*a){12}b": "a" * 60,
}


@pytest.mark.parametrize("option", ["autosign_file", "autoreject_file"])
@pytest.mark.parametrize(("line", "name"), SLOW.items(), ids=list(SLOW))
def test_no_id_makes_a_line_backtrack(
    new_worker: Callable[..., Worker], tmp_path: Path, option: str, line: str, name: str
) -> None:
    place = tmp_path / "list"
    place.write_text(line + "\n")
    worker = new_worker(**{option: str(place)})
    started = time.process_time()
    assert signed_in(worker, {}, name) == "pending"
    assert time.process_time() - started < 0.5


@pytest.mark.ordinary
def test_the_log_and_the_audit_record_name_the_line(
    new_worker: Callable[..., Worker], lists: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (lists / "uuid").write_text("# machines of rack 7\nfirst\n\n second \n")
    worker = new_worker(autosign_grains_dir=str(lists), audit=True)
    with caplog.at_level(logging.INFO):
        assert signed_in(worker, {"uuid": "second"}) == "accepted"
    assert f"the key is accepted by autosign_grains_dir, {lists}/uuid:4" in caplog.messages


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", [0o664, 0o644])
def test_a_group_may_write_where_the_option_says_so(new_worker: Callable[..., Worker], lists: Path, mode: int) -> None:
    (lists / "autosign").write_text("web*\n")
    (lists / "autosign").chmod(mode)
    worker = new_worker(autosign_file=str(lists / "autosign"), permissive_pki_access=True)
    assert signed_in(worker, {}) == "accepted"


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("name", "known"),
    [("uuid", True), ("my.grain", True), ("id:rack", True), ("ünï", True), ("uuid~", False), ("..data", False)],
)
def test_names_of_lists(name: str, known: bool) -> None:
    assert sign_in_lists.is_list(name) is known


@pytest.mark.ordinary
def test_one_reader_reads_all_lists() -> None:
    """The class is closed where it began: sign_in.py opens no list itself."""
    source = Path(sign_in.__file__).read_text()
    assert "read_text" not in source
    assert "open(" not in source
