"""The edits of the file module, on a mounted host in a temporary directory."""

from __future__ import annotations

import pytest

from statecore.model.errors import CommandError, InvocationError

TEXT = "bind 1\n#port 2\nend\n"

#: function, arguments, what it answers (a part of the diff, or all of it), the file afterwards.
EDITS = [
    ("comment", ("^bind",), "+#bind 1", "#bind 1\n#port 2\nend\n"),
    ("comment", ("^nothing",), False, TEXT),
    ("uncomment", ("port",), "+port 2", "bind 1\nport 2\nend\n"),
    ("uncomment", ("bind",), False, TEXT),
    ("comment_line", ("^end", ";", True, False), "+;end", "bind 1\n#port 2\n;end\n"),
    ("prepend", ("first",), 'Prepended 1 lines to "/f"', f"first\n{TEXT}"),
    ("line", ("x", None, "ensure", None, None, "^end"), "+x", f"{TEXT}x\n"),
    ("line", (None, "bind", "delete", None, None, None, False), True, "#port 2\nend\n"),
    ("line", (None, "nothing", "delete"), False, TEXT),
    ("blockreplace", ("#s", "#e", "x\n", True), "+x", f"{TEXT}#s\nx\n#e\n"),
    ("blockreplace", ("#s", "#e", "x\n", False, True, False, False, False), True, f"#s\nx\n#e\n{TEXT}"),
    ("blockreplace", ("#s", "#e", "x\n", True, False, False, True), "+x", TEXT),
]


@pytest.mark.parametrize(("function", "arguments", "answer", "left"), EDITS)
def test_edit(plain, function, arguments, answer, left):
    (plain.root / "f").write_text(TEXT)
    told = plain.call(f"file.{function}", "/f", *arguments)
    assert (answer in told) if isinstance(answer, str) else (told is answer)
    assert (plain.root / "f").read_text() == left


def test_backup_is_beside_the_file_with_its_mode(plain):
    (plain.root / "f").write_text(TEXT)
    (plain.root / "f").chmod(0o640)
    plain.call("file.comment", "/f", "^bind")
    kept = plain.root / "f.bak"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (TEXT, 0o640)


@pytest.mark.parametrize(
    ("function", "arguments", "error", "says"),
    [
        ("line", ("/none", "x", None, "delete"), CommandError, 'File "/none" does not exists'),
        ("line", ("/f", "x", None, "remove"), CommandError, 'Unknown mode: "remove"'),
        ("comment", ("/none", "x"), CommandError, "File not found: /none"),
        ("comment", ("/f", "x("), InvocationError, "'x(' is not a valid regular expression"),
        ("blockreplace", ("/f", "#s", "#e"), CommandError, "Markers were not found"),
    ],
)
def test_wrong(plain, function, arguments, error, says):
    (plain.root / "f").write_text(TEXT)
    with pytest.raises(error) as raised:
        plain.call(f"file.{function}", *arguments)
    assert says in str(raised.value)
    assert (plain.root / "f").read_text() == TEXT


def test_no_line_of_no_file_where_that_is_well(plain):
    assert plain.call("file.line", "/none", None, "x", "delete", quiet=True) is False
