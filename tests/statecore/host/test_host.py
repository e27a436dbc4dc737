"""Paths never leave the root, names come from the root's own files, commands run where they should."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.host.host import Host
from statecore.model.errors import HostError

PASSWD = (
    "root:x:0:0:root:/root:/bin/sh\nweb:x:1234:1235:Web:/srv/web:/bin/false\n# a comment\nbroken\nodd:x:what:1::/:\n"
)
GROUP = "root:x:0:\nweb:x:1235:\nlog:x:1300:web,root\nshort:x\n"

#: What the host has: "/" for a directory, "-> target" for a link, else a file's text.
TREE = {
    "etc/passwd": PASSWD,
    "etc/group": GROUP,
    "srv/real/file": "inside",
    "srv/absolute": "-> /srv/real",
    "srv/relative": "-> real",
    "srv/up": "-> ../../../../srv/real",
    "srv/out": "-> /etc/../../../etc",
    "srv/chain": "-> absolute",
    "srv/loop": "-> loop",
    "srv/ping": "-> pong",
    "srv/pong": "-> ping",
    "srv/dangling": "-> /nothing/at/all",
    "srv/tofile": "-> /srv/real/file",
    "srv/slashes": "-> //srv//./real/",
}


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "host"
    for name, what in TREE.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if what.startswith("-> "):
            path.symlink_to(what[3:])
        else:
            path.write_text(what)
    return top


@pytest.mark.parametrize(
    ("path", "leads_to", "itself"),
    [
        ("/", "", ""),
        ("/srv/real/file", "srv/real/file", "srv/real/file"),
        ("//srv/./real//file", "srv/real/file", "srv/real/file"),
        ("/srv/absolute/file", "srv/real/file", "srv/real/file"),
        ("/srv/absolute", "srv/real", "srv/absolute"),
        ("/srv/relative/new", "srv/real/new", "srv/real/new"),
        ("/srv/up/file", "srv/real/file", "srv/real/file"),
        ("/srv/chain/file", "srv/real/file", "srv/real/file"),
        ("/srv/out/passwd", "etc/passwd", "etc/passwd"),
        ("/srv/slashes/file", "srv/real/file", "srv/real/file"),
        ("/srv/dangling", "nothing/at/all", "srv/dangling"),
        ("/srv/tofile", "srv/real/file", "srv/tofile"),
        ("/../../../etc/passwd", "etc/passwd", "etc/passwd"),
        ("/srv/absolute/..", "srv", "srv"),
        ("/srv/absolute/../../..", "", ""),
        ("/nothing/../srv", "srv", "srv"),
    ],
)
def test_where_paths_lead(root, path, leads_to, itself):
    host = Host(root)
    assert host.path(path) == root / leads_to
    assert host.path(path, follow=False) == root / itself


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("etc/passwd", "not an absolute path"),
        ("", "not an absolute path"),
        ("/etc/\0passwd", "null byte"),
        ("/srv/loop", "too many levels"),
        ("/srv/ping/file", "too many levels"),
    ],
)
def test_paths_that_lead_nowhere(root, path, words):
    with pytest.raises(HostError, match=words):
        Host(root).path(path)


def test_a_loop_itself_can_be_named(root):
    assert Host(root).path("/srv/loop", follow=False) == root / "srv/loop"


def test_a_parent_that_becomes_a_link_is_seen(root):
    host = Host(root)
    assert host.path("/srv/real/file").read_text() == "inside"
    (root / "srv/real").rename(root / "srv/old")
    (root / "srv/real").symlink_to("/etc")
    assert host.path("/srv/real/passwd").read_text() == PASSWD


@given(
    links=st.dictionaries(
        st.sampled_from("abc"), st.lists(st.sampled_from(["a", "b", "c", "d", "..", "/", ""]), max_size=5), max_size=3
    ),
    wanted=st.lists(st.sampled_from(["a", "b", "c", "d", "..", "."]), max_size=6),
    follow=st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_leads_out(tmp_path, links, wanted, follow):
    """Whatever links there are: the path is below the root, and no component of it but the last is a link."""
    shutil.rmtree(tmp_path / "h", ignore_errors=True)
    top = tmp_path / "h" / "root"
    (top / "d" / "a").mkdir(parents=True)
    (tmp_path / "h" / "a").write_text("outside")
    for name, parts in links.items():
        (top / name).symlink_to("/".join(parts) or "/")
    try:
        found = Host(top).path("/" + "/".join(wanted), follow=follow)
    except HostError:
        # Only of a loop, which the table above has.
        return
    assert found == top or found.is_relative_to(top)
    assert ".." not in found.parts
    for parent in (found, *found.parents)[0 if follow else 1 :]:
        assert parent == top or not parent.is_relative_to(top) or not parent.is_symlink()


def test_on_this_machine_links_are_followed_only_where_asked(root):
    host = Host()
    assert not host.mounted
    link = root / "srv/relative"
    assert host.path(str(link)) == (root / "srv/real").resolve()
    assert host.path(str(link), follow=False) == link
    assert host.path(str(root / "srv/real/file")) == root / "srv/real/file"
    with pytest.raises(HostError, match="too many levels"):
        host.path(str(root / "srv/loop"))


def test_names_of_a_mounted_host(root):
    host = Host(root)
    assert host.mounted
    assert (host.uid("web"), host.gid("web"), host.gid("log")) == (1234, 1235, 1300)
    assert (host.uid("77"), host.uid(78), host.gid("79")) == (77, 78, 79)
    assert (host.user_name(1234), host.user_name(4321)) == ("web", "4321")
    assert (host.group_name(1300), host.group_name(4321)) == ("log", "4321")
    assert host._supplementary(host._account("web")) == [1235, 1300]
    for ask, word in ((host.uid, "User"), (host.gid, "Group")):
        with pytest.raises(HostError, match=f"{word} (daemon|broken|short|odd) is not available"):
            ask({"User": "daemon", "Group": "short"}[word])
    with pytest.raises(HostError, match="User odd"):
        host.uid("odd")


def test_names_are_read_again_when_they_changed(root):
    host = Host(root)
    assert host.user_name(2000) == "2000"
    (root / "etc/passwd").write_text(PASSWD + "new:x:2000:2000::/:/bin/sh\n")
    assert host.user_name(2000) == "new"
    (root / "etc/passwd").unlink()
    assert host.user_name(2000) == "2000"


def test_names_of_this_machine():
    host = Host()
    assert (host.uid("root"), host.user_name(0), host.gid("root"), host.group_name(0)) == (0, "root", 0, "root")
    assert host.user_name(3_000_000_000) == "3000000000"
    for ask in (host.uid, host.gid):
        with pytest.raises(HostError, match="nosuchname is not available"):
            ask("nosuchname")


def test_programs_of_a_mounted_host(root):
    host = Host(root)
    assert host.which("sh") is None
    tool = root / "usr/bin/tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    assert host.which("tool") is None
    tool.chmod(0o755)
    assert host.which("tool") == "/usr/bin/tool"
    (root / "bin").symlink_to("/usr/bin")
    assert host.which("/bin/tool") == "/bin/tool"
    (root / "usr/bin/folder").mkdir()
    assert host.which("folder") is None


@pytest.mark.parametrize(
    ("command", "options", "out", "err", "code"),
    [
        ("echo a; echo b >&2; exit 3", {}, "a\n", "b\n", 3),
        ("echo a; echo b >&2", {"merge_stderr": True}, "a\nb\n", "", 0),
        (["printf", "%s|", "a b", "$HOME"], {}, "a b|$HOME|", "", 0),
        ("cat", {"stdin": "héllo"}, "héllo", "", 0),
        ("cat", {"stdin": b"\xff"}, "�", "", 0),
        ("cat", {}, "", "", 0),
        ("echo $A$B", {"env": {"A": "1", "B": "2"}}, "12\n", "", 0),
        ("echo ${HOME:-none}", {"clean_env": True}, "none\n", "", 0),
        ("echo $LC_ALL", {}, "C.UTF-8\n", "", 0),
        ("umask", {"umask": 0o27}, "0027\n", "", 0),
        ("echo $0", {"shell": "/bin/sh"}, "/bin/sh\n", "", 0),
        ("kill -9 $$", {}, "", "", -9),
    ],
)
def test_commands(command, options, out, err, code):
    result = Host().run(command, **options)
    assert (result.stdout, result.stderr, result.retcode, result.timed_out) == (out, err, code, False)


def test_the_directory_of_a_command(tmp_path):
    assert Host().run("pwd", cwd=str(tmp_path)).stdout.strip() == str(tmp_path)


def test_a_command_out_of_time_goes_with_its_children(tmp_path, eventually):
    pid = tmp_path / "pid"
    result = Host().run(f"sleep 60 & echo $! > {pid}; echo said; wait", timeout=0.3)
    assert result.timed_out
    assert result.stdout == "said\n"
    assert eventually(lambda: _gone(pid.read_text().strip()))


def _gone(pid):
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().split()[2] == "Z"


def test_a_child_that_ignores_its_signal_goes_too(tmp_path, eventually):
    pid = tmp_path / "pid"
    script = tmp_path / "stubborn"
    script.write_text(f"trap '' TERM\necho $$ > {pid}\nwhile :; do sleep 0.1; done\n")
    # The child holds no pipe that would be waited for.
    result = Host().run(
        f"sh {script} >/dev/null 2>&1 & while [ ! -s {pid} ]; do sleep 0.01; done; sleep 60", timeout=0.5
    )
    assert result.timed_out
    assert eventually(lambda: _gone(pid.read_text().strip()))


def test_a_child_that_left_the_group_holds_nobody_up(tmp_path):
    pid = tmp_path / "pid"
    begun = time.monotonic()
    try:
        result = Host().run(f"setsid sh -c 'echo $$ > {pid}; echo said; exec sleep 60' & wait", timeout=0.5)
        assert time.monotonic() - begun < 30
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert result.timed_out
    assert result.stdout == "said\n"


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (["nosuchprogram"], {}, "Unable to run command 'nosuchprogram': no such program"),
        ("true", {"shell": "/bin/nosuchshell"}, "/bin/nosuchshell"),
        ("true", {"cwd": "/no/such/directory"}, "Specified cwd '/no/such/directory' either not absolute or does not"),
        ("true", {"cwd": "tmp"}, "Specified cwd 'tmp' either not absolute or does not"),
        ("true", {"runas": "nosuchuser"}, "User nosuchuser is not available"),
        ("true", {"group": "nosuchgroup"}, "Group nosuchgroup is not available"),
    ],
)
def test_commands_that_cannot_start(command, options, words):
    with pytest.raises(HostError, match=words):
        Host().run(command, **options)


def test_a_directory_tree_has_no_userland(root):
    with pytest.raises(HostError, match="no /bin/sh: it is a plain directory tree without a userland"):
        Host(root).run("true")
    (root / "bin").mkdir()
    with pytest.raises(HostError, match="has no program /bin/nosuch"):
        Host(root).run(["/bin/nosuch"])


def test_only_root_may_chroot(root, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="needs chroot, and chroot needs root"):
        Host(root).run(["tool"])


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot and becoming another user need root")
class TestAsRoot:
    """A root that holds nothing but busybox, or a shell with its libraries."""

    @pytest.fixture
    def userland(self, root):
        _install(root, "/bin/sh")
        for name in ("id", "pwd", "cat"):
            _install(root, shutil.which(name) or "")
        return root

    def test_commands_run_inside(self, userland):
        (userland / "inside").write_text("yes")
        host = Host(userland)
        assert host.run("cat /inside").stdout == "yes"
        assert (
            host.run("echo $PATH:$HOME").stdout
            == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/root\n"
        )
        (userland / "srv/web").mkdir()
        assert host.run("pwd", cwd="/srv/web").stdout == "/srv/web\n"

    def test_variables_of_ours_are_not_the_hosts(self, userland, monkeypatch):
        monkeypatch.setenv("OURS", "1")
        monkeypatch.setenv("https_proxy", "http://192.0.2.1")
        host = Host(userland)
        assert host.run("echo $OURS,$https_proxy,$SET").stdout == ",http://192.0.2.1,\n"
        host.set_variable("SET", "2")
        host.set_variable("HOME", "/srv")
        assert host.run("echo $OURS,$SET,$HOME").stdout == ",2,/srv\n"
        assert host.run("echo $SET", env={"SET": "3"}).stdout == "3\n"
        assert host.run("echo $SET", clean_env=True).stdout == "\n"
        host.set_variable("SET", None)
        host.set_variable("NEVER", None)
        assert host.run("echo $SET").stdout == "\n"

    def test_another_user_of_the_mounted_host(self, userland):
        result = Host(userland).run("id -u; id -g; id -G; echo $USER", runas="web")
        assert result.stdout == "1234\n1235\n1235 1300\nweb\n"

    def test_another_user_of_this_machine(self):
        result = Host().run("id -un; echo $HOME; echo $USER", runas="nobody")
        assert result.stdout.splitlines()[0] == result.stdout.splitlines()[2] == "nobody"


def _install(root, program):
    """A program with the libraries it needs, in the root."""
    listed = Host().run(["ldd", program])
    libraries = [word for word in listed.stdout.split() if word.startswith("/")] if listed.retcode == 0 else []
    for path in (program, *libraries):
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(path).resolve(), place)
