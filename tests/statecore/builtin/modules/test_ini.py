"""INI files: what is read is written again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.model.errors import CommandError
from statecore.system.hostfiles import ini

TEXT = "# all\na = 1\n\n[server]\n; note\nport = 80\nhosts =\n    x\n    y\n\n[empty]\n"


def test_calls(plain):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/a.ini").write_text(TEXT)
    server = {"port": "80", "hosts": "\n    x\n    y"}
    assert plain.call("ini.get_ini", "/etc/a.ini") == {"a": "1", "server": server, "empty": {}}
    assert plain.call("ini.get_section", "/etc/a.ini", "server") == server
    assert plain.call("ini.get_section", "/etc/a.ini", "none") == {}
    assert plain.call("ini.get_option", "/etc/a.ini", "server", "port") == "80"
    assert plain.call("ini.get_option", "/etc/a.ini", None, "a") == "1"
    assert plain.call("ini.get_option", "/etc/a.ini", "none", "a") is None
    assert plain.call("ini.remove_option", "/etc/a.ini", "server", "none") is None
    assert (plain.root / "etc/a.ini").read_text() == TEXT
    assert plain.call("ini.set_option", "/etc/a.ini", {"server": {"port": 81}}) == {
        "server": {"port": {"before": "80", "after": "81"}}
    }
    assert plain.call("ini.remove_section", "/etc/a.ini", "empty") == {}
    assert plain.call("ini.remove_section", "/etc/a.ini", "empty") is None
    assert "[empty]" not in (plain.root / "etc/a.ini").read_text()
    assert plain.call("ini.get_ini", "/etc/none.ini") == {}


def test_what_cannot_be_read_or_written(plain):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/a.ini").write_bytes(b"a = \xff\n")
    with pytest.raises(CommandError, match="Unable to open file"):
        plain.call("ini.get_ini", "/etc/a.ini")
    with pytest.raises(CommandError, match="Unable to write file"):
        plain.call("ini.set_option", "/no/a.ini", {"a": 1})


NAME = st.text("abcxyz", min_size=1, max_size=6)
OPTIONS = st.dictionaries(NAME, st.text("abc 01", max_size=6).map(str.strip), max_size=4)


@given(OPTIONS, st.dictionaries(NAME.map(str.upper), OPTIONS, max_size=3))
def test_what_is_set_is_read_again(options, sections):
    top: ini.Section = {}
    ini.update(top, {**options, **sections})
    assert ini.plain(ini.parse(ini.render(top))) == {**options, **sections}
    assert ini.update(ini.parse(ini.render(top)), {**options, **sections}) == {}
