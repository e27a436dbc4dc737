"""``file.patch``, with the program ``patch`` of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.statecore.conftest import PlainMinion

pytestmark = pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")

OLD, NEW = "one\ntwo\nthree\n", "one\n2\nthree\n"

PATCH = """\
--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


@pytest.fixture
def here(plain: PlainMinion, tmp_path: Path) -> PlainMinion:
    """A minion that manages this machine: the program is here."""
    plain.root = Path("/")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "f").write_text(OLD)
    plain.write("f.patch", PATCH)
    return plain


def applied(here: PlainMinion, place: Path, *, test: bool = False, **arguments: Any) -> dict[str, Any]:
    return here.state("file.patch", test=test, name=str(place), **{"source": "salt://f.patch", **arguments})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("work/f", {}),
        ("work", {"strip": 1}),
        ("work", {"options": "-p1"}),
        ("work", {"options": "--strip=1 --verbose"}),
        ("work", {"options": "--strip 1"}),
    ],
)
def test_a_patch_is_applied_once(here: PlainMinion, tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    place, file = tmp_path / name, tmp_path / "work" / "f"
    would = applied(here, place, test=True, **arguments)
    assert (would["result"], would["comment"]) == (None, "The patch would be applied")
    assert file.read_text() == OLD
    did = applied(here, place, **arguments)
    assert (did["result"], did["comment"], did["changes"]["retcode"]) == (True, "Patch successfully applied", 0)
    assert file.read_text() == NEW
    again = applied(here, place, **arguments)
    assert (again["result"], again["comment"], again["changes"]) == (True, "Patch was already applied", {})
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["f"]


@pytest.mark.parametrize("test", [True, False])
def test_what_does_not_apply_is_told_and_kept(here: PlainMinion, tmp_path: Path, test: bool) -> None:
    (tmp_path / "work" / "f").write_text("something else\n")
    rejects = tmp_path / "rejects"
    told = applied(here, tmp_path / "work/f", test=test)
    assert told["result"] is False
    assert told["comment"].startswith(
        "Patch would not apply cleanly, no changes made. Results of dry-run are below. Run"
    )
    assert "FAILED" in told["comment"]
    told = applied(here, tmp_path / "work/f", test=test, reject_file=str(rejects))
    assert "Run state again" not in told["comment"]
    assert told["comment"].endswith(f"saving rejects to file {rejects}")
    assert "-two\n+2" in rejects.read_text()
    assert (tmp_path / "work" / "f").read_text() == "something else\n"


def test_half_of_a_patch_is_not_taken_for_the_whole(here: PlainMinion, tmp_path: Path) -> None:
    """Salt says that it was already applied."""
    here.write("f.patch", PATCH + "--- a/g\n+++ b/g\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    (tmp_path / "work" / "f").write_text(NEW)
    (tmp_path / "work" / "g").write_text(OLD)
    told = applied(here, tmp_path / "work", strip=1)
    assert told["result"] is False
    assert (tmp_path / "work" / "g").read_text() == OLD


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "f"}, "Specified file f is not an absolute path"),
        ({"name": "/no/such/file"}, "/no/such/file does not exist"),
        ({"source": None}, "source is required: the URL or path of the patch"),
        ({"source": "salt://none.patch"}, "Unable to manage file: Source file salt://none.patch not found"),
        ({"source_hash": "md5=" + "0" * 32}, "Specified md5 checksum for "),
        ({"options": "-o /x --forward"}, "The following CLI options are not allowed: -o, --forward"),
        ({"options": "-px"}, "Invalid format for '-p' CLI option"),
        ({"options": "'"}, "options cannot be read"),
        ({"reject_file": "/no/such/directory/x"}, "Parent directory for reject_file '/no/such/directory/x' either"),
    ],
)
@pytest.mark.parametrize("test", [True, False])
def test_what_is_refused(here: PlainMinion, tmp_path: Path, test: bool, arguments: dict[str, Any], says: str) -> None:
    told = here.state(
        "file.patch", test=test, **{"name": str(tmp_path / "work/f"), "source": "salt://f.patch", **arguments}
    )
    assert (told["result"], told["changes"]) == (False, {})
    assert told["comment"].startswith(says)


def test_a_patch_that_is_none(here: PlainMinion, tmp_path: Path) -> None:
    here.write("f.patch", "this is no patch\n")
    told = applied(here, tmp_path / "work/f")
    assert told["result"] is False
    assert "garbage" in told["comment"]


def test_arguments_that_mean_nothing_any_more(here: PlainMinion, tmp_path: Path) -> None:
    told = applied(here, tmp_path / "work/f", hash="x")
    assert told["result"] is True
    assert told["warnings"] == ["The 'hash' argument is no longer used and has been ignored."]


def test_a_host_without_the_program(plain: PlainMinion) -> None:
    told = plain.state("file.patch", name="/f", source="salt://f.patch")
    assert (told["result"], told["comment"]) == (False, "patch executable not found on minion")
