"""Mirrors of Git repositories: what a fetch changes, what a failed one leaves, and what is said of it."""

from __future__ import annotations

import base64
import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import load_user_backend
from statecore.sources.fileserver import FileServer, UnknownBackend
from statecore.sources.gitrepos import mirror as mirror_module
from statecore.sources.gitrepos.git import GitFault, git_environment
from statecore.sources.gitrepos.mirror import Mirror, UpdateLocked
from statecore.sources.gitrepos.remotes import GitConfigError, gitfs_remotes
from tests.statecore.sources.fileserver.conftest import Repository, git, updated, write


def opts_of(tmp_path: Path, *remotes: Any, **more: Any) -> dict[str, Any]:
    return {
        "cachedir": str(tmp_path / "cache"),
        "fileserver_backend": ["gitfs"],
        "gitfs_remotes": list(remotes),
        **more,
    }


def mirror_of(opts: Mapping[str, Any]) -> Mirror:
    (remote,) = gitfs_remotes(opts)
    return Mirror(Path(opts["cachedir"]) / "gitfs", remote)


def text(server: FileServer, path: str, saltenv: str = "base") -> str | None:
    found = server.fetch(path, saltenv)
    return None if found is None else found.read_text()


def test_a_fetch_is_seen_by_who_serves(repository: Repository, tmp_path: Path) -> None:
    opts = opts_of(tmp_path, repository.url)
    server = updated(opts)
    assert text(server, "top.sls") == "top\n"
    repository.commit({"top.sls": "changed\n", "new.sls": "new\n"})
    repository.commit({"dev.sls": "dev\n"}, "dev")
    assert text(server, "top.sls") == "top\n"
    assert server.envs() == ["base"]
    assert mirror_of(opts).update() is True
    assert (text(server, "top.sls"), text(server, "new.sls")) == ("changed\n", "new\n")
    assert server.envs() == ["base", "dev"]
    assert text(server, "dev.sls", "dev") == "dev\n"
    assert mirror_of(opts).update() is False


def test_what_is_gone_from_the_repository_is_gone(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"dev.sls": "dev\n"}, "dev")
    repository.tag("v1")
    opts = opts_of(tmp_path, repository.url)
    server = updated(opts)
    assert server.envs() == ["base", "dev", "v1"]
    git(repository.directory, "checkout", "-q", "master")
    git(repository.directory, "branch", "-D", "dev")
    git(repository.directory, "tag", "-d", "v1")
    # History that is written anew, as a forced push leaves it.
    git(repository.directory, "commit", "-q", "--amend", "-m", "another")
    assert mirror_of(opts).update() is True
    assert server.envs() == ["base"]
    assert text(server, "dev.sls", "dev") is None


@pytest.mark.parametrize("broken", ["gone", "no repository"])
def test_a_fetch_that_fails_is_named_and_leaves_the_old_tree(
    broken: str, repository: Repository, tmp_path: Path
) -> None:
    opts = opts_of(tmp_path, repository.url)
    server = updated(opts)
    aside = tmp_path / "aside"
    repository.directory.rename(aside)
    if broken != "gone":
        repository.directory.mkdir()
    with pytest.raises(GitFault) as caught:
        mirror_of(opts).update()
    assert str(caught.value).startswith("git fetch: ")
    assert text(server, "top.sls") == "top\n"
    assert text(FileServer.of(opts, load_user_backend), "web/init.sls") == "web\n"


def test_passwords_are_not_in_what_is_said(tmp_path: Path) -> None:
    opts = opts_of(tmp_path, "http://ann:s3cret@127.0.0.1:1/x.git")
    with pytest.raises(GitFault) as caught:
        mirror_of(opts).update()
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in gitfs_remotes(opts)[0].shown


def test_without_git_it_is_said(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFault, match="there is no program git here"):
        mirror_of(opts_of(tmp_path, repository.url)).update()


def test_what_was_never_fetched_gives_nothing_and_is_said_once(
    repository: Repository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = FileServer.of(opts_of(tmp_path, repository.url), load_user_backend)
    assert server.envs() == server.paths() == []
    assert server.fetch("top.sls") is None
    assert [record.message for record in caplog.records] == [
        f"gitfs remote '{repository.url}' has not been fetched yet; the log of maintenance, or of salt-call --local, says why"
    ]


def test_requests_during_updates_see_one_tree_or_the_other(repository: Repository, tmp_path: Path) -> None:
    """Two files of one commit always agree, and a list is of one commit."""
    opts = opts_of(tmp_path, repository.url)
    repository.commit({"a": "0", "b": "0"})
    server = updated(opts)
    failed: list[BaseException] = []

    def change() -> None:
        try:
            for number in range(1, 8):
                repository.commit({"a": str(number), "b": str(number), f"n{number}": "", f"m{number}": ""})
                mirror_of(opts).update()
        except BaseException as error:
            failed.append(error)
            raise

    changing = threading.Thread(target=change)
    changing.start()
    seen = set()
    while changing.is_alive():
        (view,) = server.backends["gitfs"].views("base")
        found = [view.mirror.exported(view.find(name), name).read_text() for name in "ab"]
        assert len(set(found)) == 1
        names = server.paths()
        assert sum(name.startswith("n") for name in names) == sum(name.startswith("m") for name in names)
        seen.add(found[0])
    changing.join()
    assert not failed
    assert text(server, "a") == "7"
    assert seen


def test_two_that_export_a_blob_at_once_get_it_whole(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a": "content"})
    server = updated(opts_of(tmp_path, repository.url))
    (view,) = server.backends["gitfs"].views("base")
    entry, together = view.find("a"), threading.Barrier(2)
    run = mirror_module.run_git

    def at_once(words: Sequence[str], *args: Any, **kwargs: Any) -> bytes:
        if words[:2] == ["cat-file", "blob"]:
            together.wait(60)
        return run(words, *args, **kwargs)

    monkeypatch.setattr(mirror_module, "run_git", at_once)
    with ThreadPoolExecutor(2) as pool:
        found = [each.result(60) for each in [pool.submit(view.mirror.exported, entry, "a") for _ in range(2)]]
    assert [each.read_text() for each in found] == ["content"] * 2
    assert [each.name for each in found[0].parent.iterdir()] == ["a"]


def test_updates_may_be_held_up(repository: Repository, tmp_path: Path) -> None:
    mirror = mirror_of(opts_of(tmp_path, repository.url))
    assert (mirror.lock(), mirror.lock(), mirror.locked()) == (True, False, True)
    with pytest.raises(UpdateLocked, match="Update lock file is present"):
        mirror.update()
    assert (mirror.unlock(), mirror.unlock()) == (True, False)
    assert mirror.update() is True


def test_two_fetches_of_one_mirror_follow_each_other(repository: Repository, tmp_path: Path) -> None:
    opts = opts_of(tmp_path, repository.url)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(mirror_of(opts).update())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, False, False, True]


def test_names_that_a_repository_may_hold(tmp_path: Path) -> None:
    made = Repository(tmp_path / "awkward")
    names = ("with space", "ümläut", "new\nline", "-dash", "quote'\"", "a/.hidden", "x" * 200, "trailing ")
    made.commit({name: f"<{name}>" for name in names})
    server = updated(opts_of(tmp_path, made.url))
    assert server.paths() == sorted(names)
    assert all(text(server, name) == f"<{name}>" for name in names)


def test_names_that_lead_nowhere(repository: Repository, tmp_path: Path) -> None:
    write(repository.directory, {"circle": "-> circle2", "circle2": "-> circle", "up": "-> ../..", "dir": "-> web"})
    repository.commit({})
    server = updated(opts_of(tmp_path, repository.url))
    for path in (
        "",
        ".",
        "..",
        "../top.sls",
        "/top.sls",
        "web",
        "web/",
        "circle",
        "up",
        "up/etc/passwd",
        "a\0b",
        "dir",
    ):
        assert server.fetch(path) is None, path
    assert text(server, "dir/init.sls") == "web\n"
    for env in ("", "..", "-x", "refs/heads/master", "HEAD", "master", "deadbeef", "x" * 5000, "a\0b"):
        assert server.fetch("top.sls", env) is None, env


def test_a_file_that_is_run_is_run_and_a_big_one_is_whole(repository: Repository, tmp_path: Path) -> None:
    big = "0123456789abcdef" * 200_000
    repository.commit({"run.sh": "#!/bin/sh\n", "big": big})
    server = updated(opts_of(tmp_path, repository.url))
    assert (server.mode("run.sh"), server.mode("big")) == (0o755, 0o644)
    assert server.stat("run.sh") == [0o100755]
    assert text(server, "big") == big
    assert server.shown(server.fetch("run.sh")) == f"salt://run.sh ({repository.url})"


def test_history_may_be_left_out(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"more": ""})
    opts = opts_of(tmp_path, repository.url, gitfs_depth=1)
    mirror = mirror_of(opts)
    mirror.update()
    done = subprocess.run(
        ["git", "rev-list", "--all", "--count"],
        env={**os.environ, "GIT_DIR": str(mirror.place)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
    assert text(FileServer.of(opts, load_user_backend), "more") == ""


WRONG: Mapping[str, tuple[Any, str]] = {
    "no list": ("https://x/y.git", "remotes must be a list of URLs"),
    "two in one": ([{"https://a/b": [], "https://c/d": []}], "must be `URL: parameters`"),
    "a colon too much": ([{"https://a/b": None}], "has no parameters: take the colon away"),
    "unknown parameter": ([{"https://a/b": [{"rooot": "x"}]}], "has no parameter 'rooot'; the nearest is 'root'"),
    "no parameters": ([{"https://a/b": ["root"]}], "its parameters must be a list of `name: value`"),
    "no flag": ([{"https://a/b": [{"ssl_verify": "yes"}]}], "ssl_verify must be true or false"),
    "no number": ([{"https://a/b": [{"update_interval": "often"}]}], "update_interval must be a whole number"),
    "no environments": ([{"https://a/b": [{"saltenv": ["dev"]}]}], "saltenv must be a list of `name: value`"),
    "unknown place": (
        [{"https://a/b": [{"saltenv": [{"dev": [{"rev": "x"}]}]}]}],
        "knows ref, root, mountpoint of 'dev'",
    ),
    "a password in the clear": ([{"http://a/b": [{"password": "x"}]}], "a password would go over plain http"),
    "a passphrase": ([{"ssh://a/b": [{"passphrase": "x"}]}], "passphrase without privkey"),
    "half a key": ([{"ssh://a/b": [{"pubkey": "x"}]}], "pubkey without privkey"),
    "an option as URL": (["--upload-pack=evil"], "is no URL of a repository"),
    "an empty URL": ([""], "is no URL of a repository"),
}


@pytest.mark.parametrize("name", WRONG)
def test_remotes_that_cannot_be_used(name: str) -> None:
    remotes, error = WRONG[name]
    with pytest.raises(GitConfigError) as caught:
        gitfs_remotes({"gitfs_remotes": remotes})
    assert error in str(caught.value)


@pytest.mark.parametrize(("given", "opens"), [('s\u00fc\u00df "q" $x', True), ("another", False)])
def test_a_key_with_a_passphrase_is_opened_without_asking_anybody(tmp_path: Path, given: str, opens: bool) -> None:
    key = tmp_path / "id"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", 's\u00fc\u00df "q" $x', "-f", str(key)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    parameters = [{"privkey": str(key)}, {"passphrase": given}]
    (remote,) = gitfs_remotes({"gitfs_remotes": [{"ssh://git@127.0.0.1/x": parameters}]})
    environment = git_environment(remote, tmp_path / "mirror", tmp_path / "home")
    # It asks as ssh does, by what SSH_ASKPASS names.
    told = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(key)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (told.returncode == 0) is opens
    assert "BatchMode" not in environment["GIT_SSH_COMMAND"]
    assert "PasswordAuthentication=no" in environment["GIT_SSH_COMMAND"]
    assert given not in environment["GIT_SSH_COMMAND"]


def test_why_ssh_reaches_no_server_is_said(tmp_path: Path) -> None:
    # Nobody listens on port 1.
    mirror = mirror_of(opts_of(tmp_path, "ssh://git@127.0.0.1:1/x"))
    with pytest.raises(GitFault, match=r"127\.0\.0\.1 port 1: .*; fatal: Could not read from remote repository"):
        mirror.update()


def test_backends_are_chosen_by_name(tmp_path: Path) -> None:
    server = FileServer.of(opts_of(tmp_path, fileserver_backend=["roots", "git", "minion"]), load_user_backend)
    assert list(server.backends) == ["roots", "gitfs", "minionfs"]
    assert list(server.only("gitfs,roots").backends) == ["gitfs", "roots"]
    assert list(server.only(["-git"]).backends) == ["roots", "minionfs"]
    assert list(server.only("-roots,git").backends) == ["gitfs"]
    assert server.only(None) is server
    with pytest.raises(UnknownBackend, match="the nearest is 'gitfs'"):
        server.only("gitf")
    with pytest.raises(UnknownBackend, match="not in the option fileserver_backend"):
        FileServer.of({"fileserver_backend": ["roots"]}, load_user_backend).only("git")
    with pytest.raises(UnknownBackend, match="there are roots, gitfs, minionfs"):
        FileServer.of({"fileserver_backend": ["hg"]}, load_user_backend)


class _Guarded(http.server.SimpleHTTPRequestHandler):
    """Files for who knows the password; ``asked`` is who came with which."""

    asked: list[str | None]

    def do_GET(self) -> None:
        told = self.headers.get("Authorization")
        self.asked.append(told)
        if told == "Basic " + base64.b64encode(b"ann:s3cret'\"$x").decode():
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize(("password", "lets_in"), [("s3cret'\"$x", True), ("wrong", False), ("", False)])
def test_a_password_goes_to_its_host(password: str, lets_in: bool, repository: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "-q", "--bare", repository.url, str(bare))
    git(bare, "update-server-info")
    asked: list[str | None] = []
    handler = type("Handler", (_Guarded,), {"asked": asked})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(bare)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        login = {"gitfs_user": "ann", "gitfs_password": password, "gitfs_insecure_auth": True, "gitfs_proxy": ""}
        opts = opts_of(tmp_path, url, **login)
        if lets_in:
            assert text(updated(opts), "top.sls") == "top\n"
        else:
            with pytest.raises(GitFault, match="git fetch: fatal: Authentication failed"):
                mirror_of(opts).update()
        # Not before the server asks.
        assert asked[0] is None
    finally:
        server.shutdown()
        server.server_close()
