"""Cron tables of a mounted host without crontab: files of its spool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.model.errors import NotAvailable
from statecore.system.hostfiles import cron_table

TABLE = (
    "0 0 * * * /bin/own\n"
    f"{cron_table.TAG}\n"
    "MAILTO=ops\n"
    "# why\n# SALT_CRON_IDENTIFIER:JOB\n"
    "#DISABLED#5 1 * * 1-5 /bin/job --x=1  'a  b'\n"
    "@daily /bin/daily x\n"
)


@pytest.fixture
def spool(plain):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nweb:x:33:33::/:/bin/sh\n")
    place = plain.root / "var/spool/cron/crontabs"
    place.mkdir(parents=True)
    (place / "root").write_text(TABLE)
    return place


def test_reading(plain, spool):
    job = {"minute": "5", "hour": "1", "daymonth": "*", "month": "*", "dayweek": "1-5", "commented": True}
    job |= {"cmd": "/bin/job --x=1  'a  b'", "identifier": "JOB", "comment": "why\n"}
    daily = {"spec": "@daily", "cmd": "/bin/daily x", "identifier": None, "comment": None, "commented": False}
    assert plain.call("cron.list_tab", "root") == {
        "pre": ["0 0 * * * /bin/own"],
        "env": [{"name": "MAILTO", "value": "ops"}],
        "crons": [job],
        "special": [daily],
    }
    assert plain.call("cron.get_entry", "root", identifier="JOB") == job
    assert plain.call("cron.get_entry", "root", cmd="/bin/daily x") == daily
    assert plain.call("cron.get_entry", "root", cmd="/bin/none") is False
    assert plain.call("cron.raw_cron", "web") == ""


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "answer"),
    [
        ("set_job", ("web", 1, "*", "*", "*", "*", "/bin/x"), {}, "new"),
        ("set_job", ("root", "*", "*", "*", "*", "*", "/bin/y"), {"identifier": "JOB", "commented": True}, "updated"),
        ("set_special", ("root", "@daily", "/bin/daily x"), {}, "present"),
        ("set_special", ("root", "@hourly", "/bin/daily x"), {}, "updated"),
        ("rm_job", ("root", "x"), {"identifier": "JOB"}, "removed"),
        ("rm_job", ("root", "x"), {"identifier": "JOB", "minute": 6}, "absent"),
        ("rm", ("root", "x"), {"identifier": "JOB", "minute": "random"}, "removed"),
        ("rm_special", ("root", "/bin/daily x"), {}, "removed"),
        ("rm_special", ("root", "/bin/daily x"), {"special": "@hourly"}, "absent"),
        ("set_env", ("root", "MAILTO", "ops"), {}, "present"),
        ("set_env", ("root", "PATH", "/bin"), {}, "new"),
        ("set_env", ("root", "MAILTO"), {}, "updated"),
        ("rm_env", ("root", "MAILTO"), {}, "removed"),
        ("rm_env", ("root", "X"), {}, "absent"),
    ],
)
def test_writing(plain, spool, name, args, kwargs, answer):
    before = (spool / "root").read_text()
    assert plain.call(f"cron.{name}", *args, **kwargs) == answer
    if answer in ("present", "absent"):
        assert (spool / "root").read_text() == before
    else:
        changed = spool / args[0]
        assert changed.stat().st_mode & 0o777 in (0o600, 0o644)
        assert cron_table.TAG in changed.read_text()


def test_a_table_from_a_file_of_the_host(plain, spool):
    (plain.root / "tab").write_text("X=1\n")
    assert plain.call("cron.write_cron_file", "web", "/tab") is True
    assert (spool / "web").read_text() == "X=1\n"
    assert plain.call("cron.write_cron_file", "web", "/nothing") is False


def test_users_are_no_way_out(plain, spool):
    with pytest.raises(Exception, match="no cron table of the user"):
        plain.call("cron.raw_cron", "../../../etc/passwd")


def test_hosts_without_cron(plain):
    with pytest.raises(NotAvailable, match="no program crontab, and none of /var/spool"):
        plain.call("cron.list_tab", "root")


def test_random_times():
    drawn = cron_table.drawn({"minute": "random", "hour": "5:7", "daymonth": "random", "month": "4", "dayweek": "*"})
    assert 0 <= int(drawn["minute"]) < 60
    assert 5 <= int(drawn["hour"]) <= 7
    assert 1 <= int(drawn["daymonth"]) <= 30
    assert (drawn["month"], drawn["dayweek"]) == ("4", "*")


WORD = st.text("abc/=-#*'", min_size=1, max_size=8).filter(lambda text: not text.startswith("#"))


@given(
    st.lists(
        st.tuples(WORD, st.none() | WORD.filter(lambda text: "#" not in text), st.booleans()),
        unique_by=lambda row: row[0],
        max_size=4,
    )
)
def test_what_is_rendered_is_read_again(rows):
    table = {"pre": ["x"], "env": [], "crons": [], "special": []}
    for cmd, identifier, commented in rows:
        about = {
            "cmd": cmd,
            "identifier": identifier,
            "comment": None if identifier is None else "",
            "commented": commented,
        }
        table["crons"].append({**dict.fromkeys(cron_table.TIMES, "*"), **about})
    assert cron_table.parse(cron_table.render(table)) == table
