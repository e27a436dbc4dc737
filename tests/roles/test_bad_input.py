"""Bad input: what is wrong, in which file and line, a non-zero exit code, and never a traceback (design promise 5)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.roles.lab import Lab

pytestmark = pytest.mark.roles


@dataclass(frozen=True)
class Bad:
    """An SLS file that cannot be applied, and what must be said about it."""

    name: str
    text: str
    #: The sentence, as Salt has it where Salt has one.
    says: tuple[str, ...]
    #: The line that is to blame; 0: the file is not there.
    line: int
    #: A list of faults in the place of a run; False: a run with one failed state.
    compile_error: bool = True


FINE = "fine:\n  test.nop: []\n"

BAD = (
    Bad(
        "yaml_error",
        FINE + "broken:\n  test.nop:\n   - name: x\n  - name: y\n",
        ("Rendering SLS 'base:yaml_error' failed: ", "did not find expected key"),
        6,
    ),
    Bad(
        "yaml_unclosed",
        FINE + "broken:\n  test.nop:\n    - name: [unclosed\n",
        ("Rendering SLS 'base:yaml_unclosed' failed: ", "flow sequence"),
        5,
    ),
    Bad(
        "jinja_undefined",
        FINE + "undefined:\n  test.nop:\n    - name: {{ nobody.knows }}\n",
        ("Rendering SLS 'base:jinja_undefined' failed: Jinja variable 'nobody' is undefined",),
        5,
    ),
    Bad(
        "jinja_syntax",
        FINE + "{% if %}\n",
        ("Rendering SLS 'base:jinja_syntax' failed: Jinja syntax error",),
        3,
    ),
    Bad(
        "missing_include",
        "include:\n  - nowhere.at.all\n" + FINE,
        ("Specified SLS nowhere.at.all in saltenv base is not available on the salt master",),
        2,
    ),
    Bad(
        "unknown_function",
        FINE + "nope:\n  file.managd:\n    - name: /etc/nope\n",
        ("State 'file.managd' was not found in SLS 'unknown_function'", "Did you mean 'file.managed'?"),
        4,
        compile_error=False,
    ),
    Bad(
        "missing_requisite",
        FINE + "lost:\n  test.nop:\n    - require:\n      - file: /not/there\n",
        ("Referenced state does not exist for requisite [require: (file: /not/there)] in state [lost]",),
        5,
    ),
    Bad(
        "recursive_requisite",
        "one:\n  test.nop:\n    - require:\n      - test: two\ntwo:\n  test.nop:\n    - require:\n      - test: one\n",
        ("Recursive requisites were found", "'ID': 'one'", "'ID': 'two'"),
        7,
    ),
    Bad(
        "duplicate_id",
        "same:\n  test.nop: []\nsame:\n  test.nop: []\n",
        ("found conflicting ID 'same'", "the first one is in line 1"),
        3,
    ),
    Bad(
        "duplicate_in_two",
        "include:\n  - base.motd\nmotd:\n  test.nop: []\n",
        ("Detected conflicting IDs", "The conflicting ID is 'motd'", "SLS 'base:base.motd'", "base/motd.sls:2"),
        3,
    ),
    Bad(
        "unknown_argument",
        FINE + "odd:\n  host.present:\n    - name: odd\n    - ip: 192.0.2.1\n    - ipp: x\n",
        ("'ipp' is an invalid keyword argument for 'host.present'", "Did you mean 'ip'"),
        7,
        compile_error=False,
    ),
    Bad("no_map", "- a\n- b\n", ("SLS no_map does not render to a dictionary",), 1),
    Bad("no_sls", "", ("No matching sls found for 'no_sls' in env 'base'", "salt://no_sls.sls"), 0),
)


def no_traceback(lab: Lab, *texts: str) -> None:
    assert not [text for text in texts if "Traceback" in text]
    assert lab.tracebacks() == []


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_an_sls_that_cannot_be_applied(lab: Lab, bad: Bad) -> None:
    path = lab.tree / "salt" / f"{bad.name}.sls"
    if bad.text:
        path.write_text(bad.text)
    try:
        answer = lab.run("salt", "web1", "state.apply", bad.name)
    finally:
        path.unlink(missing_ok=True)
    assert answer.code == 1, answer
    assert all(words in answer.out for words in bad.says), answer
    assert ("Data failed to compile:" in answer.out) == bad.compile_error, answer
    if bad.line:
        assert f"{bad.name}.sls:{bad.line}\n" in answer.out, answer
    if not bad.compile_error:
        # What is right in the same file was done.
        assert "Succeeded: 1" in answer.out, answer
        assert "Failed:    1" in answer.out, answer
    assert "ERROR: Minions returned with non-zero exit code" in answer.err, answer
    assert not (lab.host("web1") / "etc" / "odd").exists()
    no_traceback(lab, answer.out, answer.err)


def test_a_pillar_that_cannot_be_rendered_stops_the_run(lab: Lab) -> None:
    path = lab.tree / "pillar" / "web2.sls"
    good = path.read_text()
    path.write_text("owner: {{ nobody.knows }}\n")
    try:
        answer = lab.run("salt", "web2", "state.apply", "base")
    finally:
        path.write_text(good)
    assert answer.code == 1, answer
    assert "Pillar failed to render with the following messages:" in answer.out, answer
    assert "web2.sls:1" in answer.out, answer
    # Pillar holds secrets: what is in the line, only the master's log tells, as in Salt.
    assert "nobody" not in answer.out, answer
    assert "Jinja variable 'nobody' is undefined; line 1" in lab.log("mworker")
    no_traceback(lab, answer.out, answer.err)
    assert lab.salt("web2", "state.apply", "base", "test=True")["web2"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("salt", "nobody", "test.ping"),
            2,
            "No minions matched the target. No command was sent, no jid was assigned.",
        ),
        (("salt", "-L", "nobody,noone", "test.ping"), 2, "No minions matched the target."),
        (("salt", "-G", "os:Plan9", "test.ping"), 2, "No minions matched the target."),
        (("salt", "-C", "web1 and (", "test.ping"), 1, "ERROR: a target is missing at the end in 'web1 and ('"),
        (("salt", "-E", "[", "test.ping"), 1, "ERROR: '[' is not a valid regular expression"),
        (("salt", "-S", "10.0.0.0/99", "test.ping"), 1, "10.0.0.0/99"),
        (("salt", "-N", "nobodies", "test.ping"), 1, "there is no node group 'nobodies'"),
        (("salt", "web1", "no.such"), 1, "'no.such' is not available."),
        (("salt", "web1", "test.ping", "word"), 1, "Passed invalid arguments to test.ping"),
        (("salt", "web1"), 64, "a target and a function are needed"),
        (("salt", "--no-such-option", "web1", "test.ping"), 64, "--no-such-option"),
        (("salt-run", "jobs.lookup_jod"), 1, "The nearest is 'jobs.lookup_jid'."),
        (("salt-run", "jobs.lookup_jid", "yesterday"), 1, "'yesterday' is not a JID"),
        (("salt-run", "jobs.lookup_jid", "20200101000000000000"), 1, "no job with the JID 20200101000000000000"),
        (("salt-run", "jobs.list_jobs", "frob=1"), 1, "frob"),
        (("salt-key", "-l", "odd"), 64, "'odd' is not a valid argument to '--list'"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_question(lab: Lab, words: tuple[str, ...], code: int, said: str) -> None:
    answer = lab.run(*words)
    assert answer.code == code, answer
    assert said in answer.out + answer.err, answer
    no_traceback(lab, answer.out, answer.err)


def test_no_minion_matched_is_told_as_salt_tells_it(lab: Lab) -> None:
    answer = lab.run("salt", "nobody", "test.ping")
    assert answer.out == "No minions matched the target. No command was sent, no jid was assigned.\n"
    assert answer.err == "ERROR: No return received\n"


def test_a_configuration_with_an_unknown_option_starts_nothing(lab: Lab) -> None:
    directory = lab.root / "wrong"
    directory.mkdir()
    (directory / "master").write_text("interface: 127.0.0.1\nret_port: many\n")
    said = f"{directory}/master, line 2: option 'ret_port' must be a whole number, not 'many'"
    for words in (("saltern", "reqserver", "-c", str(directory)), ("salt", "-c", str(directory), "*", "test.ping")):
        answer = lab.run(*words)
        assert answer.code == 78, answer
        assert said in answer.err, answer
        no_traceback(lab, answer.out, answer.err)
