"""The cmd module on this machine, in temporary directories."""

from __future__ import annotations

import json
import os

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.runtime.runtime import local_runtime


@pytest.fixture
def call(plain):
    """cmd.NAME(...) on this machine, as an operator calls it."""

    def ask(name, *args, **kwargs):
        return plain.context(host=Host(), scratch={"cmd.shell": True}).call(f"cmd.{name}", *args, **kwargs)

    return ask


@pytest.mark.parametrize(
    ("name", "args", "options", "answer"),
    [
        ("run", ("echo a; echo b >&2",), {}, "a\nb"),
        ("run", ("printf 'b\na\n' | sort",), {}, "a\nb"),
        ("run", ("echo a | cat",), {"python_shell": False}, "a | cat"),
        ("run", (["echo", "a b", "$HOME"],), {}, "a b $HOME"),
        ("run", (["echo", "a  b", "$HOME"],), {"python_shell": True}, "a  b $HOME"),
        ("run", ("printf 'a\n\n'",), {"rstrip": False}, "a\n\n"),
        ("run", ("echo a",), {"hide_output": True}, ""),
        ("run", ("cat",), {"stdin": "one\\ntwo"}, "one\ntwo"),
        ("run", ("echo $A-$B",), {"env": {"A": 1, "B": True}}, "1-True"),
        ("run", ("echo $A-$B",), {"env": [{"A": 1}, {"B": 2}]}, "1-2"),
        ("run", ("echo ${HOME:-none}",), {"clean_env": True}, "none"),
        ("run", ("echo $PATH",), {"prepend_path": "/opt/x", "env": {"PATH": "/bin"}}, "/opt/x:/bin"),
        ("run", ("umask",), {"umask": "027"}, "0027"),
        ("run", ("umask",), {"umask": 77}, "0077"),
        ("run", ("echo {{ name }}",), {"template": "jinja"}, "None"),
        ("run", ("exit 3",), {}, ""),
        ("run", ("echo $0",), {"shell": "/bin/sh"}, "/bin/sh"),
        ("run", ("echo ok",), {"__pub_jid": "1"}, "ok"),
        ("run_stdout", ("echo a; echo b >&2",), {}, "a"),
        ("run_stderr", ("echo a; echo b >&2",), {}, "b"),
        ("run_stdout", ("echo a",), {"hide_output": True}, ""),
        ("shell", ("echo a | cat",), {}, "a"),
        ("retcode", ("exit 3",), {}, 3),
        ("retcode", ("exit 3",), {"success_retcodes": [1, 3]}, 0),
        ("retcode", ("exit 3",), {"success_retcodes": "1,3"}, 0),
        ("retcode", ("echo fine; exit 3",), {"success_stdout": ["fine"]}, 0),
        ("retcode", ("echo finer; exit 3",), {"success_stdout": "fine"}, 0),
        ("retcode", ("echo other; exit 3",), {"success_stdout": "fine"}, 3),
        ("retcode", ("echo fine >&2; exit 3",), {"success_stderr": "fine"}, 0),
        ("exec_code", ("sh", "echo $((6 * 7))"), {}, "42"),
        ("exec_code", ("sh", ["echo a", "echo b"]), {}, "a\nb"),
        ("has_exec", ("sh",), {}, True),
        ("has_exec", ("nosuchprogram",), {}, False),
        ("which", ("nosuchprogram",), {}, None),
        ("which_bin", (["nosuchprogram", "/bin/sh"],), {}, "/bin/sh"),
        ("which_bin", (["nosuchprogram"],), {}, None),
    ],
)
def test_answers(call, name, args, options, answer):
    assert call(name, *args, **options) == answer


@pytest.mark.parametrize(
    ("args", "options", "error", "words"),
    [
        (("true",), {"env": "A=1"}, InvocationError, "env must be a map"),
        (("true",), {"env": ["A=1"]}, InvocationError, "env must be a map"),
        (("true",), {"umask": "999"}, InvocationError, "Invalid umask: '999'"),
        (("true",), {"success_retcodes": "one"}, InvocationError, "'one'"),
        (("echo 'a",), {"python_shell": False}, InvocationError, "cannot be split into words"),
        (("true",), {"cwd": "/no/such"}, HostError, "Specified cwd '/no/such'"),
        (("true",), {"shell": "/bin/nosuch"}, CommandError, "The shell /bin/nosuch is not available"),
        (("true",), {"runas": "nosuchuser"}, CommandError, "User 'nosuchuser' is not available"),
        ((["nosuchprogram"],), {}, HostError, "no such program"),
        (("exit 3",), {"raise_err": True}, CommandError, "'exit 3' failed with return code 3"),
    ],
)
def test_refusals(call, args, options, error, words):
    with pytest.raises(error, match=words):
        call("run", *args, **options)


def test_all_of_a_run(call):
    told = call("run_all", "echo a; echo b >&2; exit 3")
    assert told.pop("pid") > 0
    assert told == {"retcode": 3, "stdout": "a", "stderr": "b"}
    assert call("run_all", "echo a; echo b >&2", redirect_stderr=True)["stdout"] == "a\nb"
    assert call("run_all", "echo a", hide_output=True)["stdout"] == ""


def test_the_code_is_left_for_the_job(plain):
    ctx = plain.context(host=Host(), scratch={"cmd.shell": True})
    ctx.call("cmd.run", "exit 3")
    assert ctx.scratch["retcode"] == 3
    ctx.call("cmd.run", "exit 4", ignore_retcode=True)
    assert ctx.scratch["retcode"] == 3
    ctx.call("cmd.run", "true")
    assert ctx.scratch["retcode"] == 0


@pytest.mark.parametrize(
    ("options", "scratch", "safe", "said"),
    [
        ({}, {}, True, "a; echo $HOME"),
        ({"python_shell": True}, {}, True, "a\n/"),
        ({}, {"cmd.shell": True}, True, "a\n/"),
        ({"python_shell": False}, {"cmd.shell": True}, True, "a; echo $HOME"),
        ({}, {}, False, "a\n/"),
    ],
)
def test_who_gets_a_shell(plain, options, scratch, safe, said):
    """What a template calls does not, unless it says so: nothing in its words is more than a word."""
    plain.opts["cmd_safe"] = safe
    ctx = plain.context(host=Host(), scratch=scratch)
    for name in ("run", "run_stdout", "shell"):
        answer = ctx.call(f"cmd.{name}", "echo a; echo $HOME", env={"HOME": "/"}, **options)
        assert answer == ("a\n/" if name == "shell" and "python_shell" not in options else said)


def test_an_operator_gets_a_shell_and_a_template_none(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/s.sls").write_text("{{ salt['cmd.run']('echo a | cat') }}:\n  test.nop: []\n")
    runtime = local_runtime(
        {
            "id": "m",
            "file_roots": {"base": [tmp_path / "tree"]},
            "pillar_roots": {},
            "cachedir": str(tmp_path / "cache"),
        }
    )
    assert runtime.call("cmd.run", ["echo a | cat"]).value == "a"
    assert list(runtime.call("state.show_sls", ["s"]).value) == ["a | cat"]


def test_out_of_time(call):
    told = call("run_all", "echo begun; exec sleep 60", timeout=0.2)
    assert (told["retcode"], told["stdout"]) == (1, "begun\necho begun; exec sleep 60 : Timed out after 0.2 seconds")


def test_in_the_background(call, tmp_path):
    """The command goes on when the function is done: it waits for us, then says so."""
    (tmp_path / "gate").touch()
    pipe = tmp_path / "pipe"
    call("run", ["mkfifo", str(pipe)])
    told = call("run_all", f"echo done > {pipe}", bg=True)
    assert told.pop("pid") > 0
    assert told == {"retcode": None, "stdout": "", "stderr": ""}
    assert pipe.read_text() == "done\n"
    assert call("retcode", "exit 3", bg=True) == 0


def test_scripts(plain, call, tmp_path):
    plain.write("hello.sh", '#!/bin/sh\necho "$#:$1:$2"; pwd; exit 5\n')
    plain.write("bare", "echo no first line\n")
    plain.write("page.sh", "#!/bin/sh\necho {{ name }}\n")
    own = tmp_path / "own.sh"
    own.write_text("#!/bin/sh\necho own\n")
    told = call("script", "salt://hello.sh", "'a b' $HOME", cwd=str(tmp_path))
    assert (told["stdout"], told["retcode"]) == (f"2:a b:$HOME\n{tmp_path}", 5)
    assert call("script", "salt://hello.sh", ["x y", "z"])["stdout"].startswith("2:x y:z\n")
    assert call("script", "salt://bare")["stdout"] == "no first line"
    assert call("script", "salt://page.sh", template="jinja", context={"name": "w"})["stdout"] == "w"
    assert call("script", str(own))["stdout"] == "own"
    assert call("script_retcode", "salt://hello.sh") == 5
    assert call("script", "salt://none.sh") == {"pid": 0, "retcode": 1, "stdout": "", "stderr": "", "cache_error": True}
    assert call("script", "salt://hello.sh", saltenv="none")["cache_error"] is True


def test_a_script_is_gone_when_it_is_done(call, plain):
    plain.write("where.sh", '#!/bin/sh\necho "$0"\n')
    place = call("script", "salt://where.sh")["stdout"]
    assert place.startswith("/tmp/")
    assert call("retcode", f"test -e {place}") == 1


@pytest.mark.parametrize(
    ("name", "args", "options", "answer"),
    [
        ("shell", ("echo a | cat",), {"python_shell": False}, "a | cat"),
        ("run", ("echo a",), {"password": "unused", "encoded_cmd": True}, "a"),
        ("run", ("echo a",), {"nonsense": 1}, "a"),
        ("retcode", ("echo 'some warning' >&2; exit 3",), {"success_stderr": ["warning"]}, 0),
        ("exec_code", ("python3", ["import sys", "print(sys.argv[1])"], None, "x"), {}, "x"),
        ("tty", ("disk0", "x"), {}, {"Error": "The specified device is not a valid TTY"}),
        ("tty", ("tty/../sda", "x"), {}, {"Error": "The specified device is not a valid TTY"}),
        ("tty", ("pts99999", "x"), {}, {"Error": "Echoing to /dev/pts/99999 returned error"}),
    ],
)
def test_as_salt(call, name, args, options, answer):
    assert call(name, *args, **options) == answer


def test_code_with_its_exit_code(call):
    code = ["import sys", "print(sys.argv[1])", "sys.exit('e')"]
    told = call("exec_code_all", "python3", code, args=["x y"])
    assert (told["retcode"], told["stdout"], told["stderr"]) == (1, "x y", "e")
    assert told["pid"] > 0


def test_a_command_that_nobody_waits_for(call, tmp_path):
    pipe = tmp_path / "pipe"
    call("run", ["mkfifo", str(pipe)])
    told = call("run_bg", f"echo done > {pipe}")
    assert [*told] == ["pid"]
    assert pipe.read_text() == "done\n"


def test_shells_of_the_host(plain):
    assert plain.call("cmd.shells") == []
    (plain.root / "etc").mkdir(exist_ok=True)
    (plain.root / "etc/shells").write_text("# login shells\n/bin/sh\n\n /bin/bash \n")
    assert plain.call("cmd.shells") == ["/bin/sh", "/bin/bash"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run commands as others")
def test_commands_of_another_user(call, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert call("run", "pwd", cwd=str(closed), runas="nobody") == str(closed)
    assert call("run", "echo $SHELL $USER", runas="nobody") == "/bin/sh nobody"
    assert call("run", "echo $SHELL", runas="nobody", shell="/bin/bash") == "/bin/bash"


def test_a_command_on_a_terminal(call):
    told = call("run_all", "test -t 1 && echo yes; echo e >&2; exit 3", use_vt=True)
    assert (told["retcode"], told["stdout"], told["stderr"]) == (3, "yes\ne\n", "")
    assert call("run", ["sh", "-c", 'test -t 0 && echo "$0"', "a b"], use_vt=True) == "a b\n"


def test_a_host_without_terminals(plain):
    with pytest.raises(CommandError, match="the host has no program script"):
        plain.call("cmd.run", "true", use_vt=True)


@pytest.mark.parametrize(
    ("env", "opts", "options", "shell"),
    [
        ("/bin/bash", {}, {}, "/bin/bash"),
        ("/bin/bash", {"command_shell": "/bin/sh"}, {}, "/bin/sh"),
        ("/bin/bash", {}, {"shell": "/bin/sh"}, "/bin/sh"),
        ("", {}, {}, "/bin/sh"),
        ("/no/such/shell", {}, {}, "/bin/sh"),
        ("/usr/sbin/nologin", {}, {}, "/bin/sh"),
        ("/bin/false", {}, {}, "/bin/sh"),
        ("bash", {}, {}, "/bin/sh"),
    ],
)
def test_the_shell_is_that_of_the_process_as_in_salt(plain, monkeypatch, env, opts, options, shell):
    monkeypatch.setenv("SHELL", env)
    ctx = plain.context(host=Host(), scratch={"cmd.shell": True}, opts={**plain.opts, **opts})
    assert ctx.call("cmd.run", "echo $0", **options) == shell
    if shell == "/bin/bash":
        assert ctx.call("cmd.run", "[[ a == a ]] && echo same") == "same"


@pytest.mark.oracle
@pytest.mark.parametrize("env", ["/bin/bash", "/bin/sh"])
def test_real_salt_takes_the_same_shell(oracle, tmp_path, monkeypatch, env):
    monkeypatch.setenv("SHELL", env)
    (tmp_path / "minion").write_text(f"root_dir: {tmp_path}\nid: one\nfile_client: local\n")
    words = ("-c", str(tmp_path), "--local", "--out=json", "cmd.run", "echo $0")
    assert json.loads(oracle.run("salt-call", *words)) == {"local": env}
