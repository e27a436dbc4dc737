"""file.managed with sources behind HTTP: a loopback server, a mounted host."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from statecore.model.errors import CommandError
from statecore.sources import downloads
from tests.statecore.builtin.states.conftest import Case

DATA = b"from afar\n"
SHA256 = hashlib.sha256(DATA).hexdigest()
SERVED = {
    "/page.txt": DATA,
    "/page.jinja": b"{{ who }}\n",
    "/SHA256SUMS": f"{'0' * 64}  other.txt\n{SHA256} *page.txt\n".encode(),
    "/none": b"no digest here\n",
}


@pytest.fixture
def server():
    """(address, paths asked for)."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            data = SERVED.get(self.path)
            self.send_response(404 if data is None else 200)
            length = len(data or b"")
            self.send_header("Content-Length", str(length + 5 if self.path == "/cut" else length))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *args):
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}", asked
        finally:
            running.shutdown()
            thread.join(10)


#: Arguments (URL stands for the server), whether it works, what the file holds or the comment says.
CASES = {
    "hash": ({"source": "URL/page.txt", "source_hash": f"sha256={SHA256}"}, True, DATA.decode()),
    "bare hash": ({"source": "URL/page.txt", "source_hash": SHA256}, True, DATA.decode()),
    "hash file": ({"source": "URL/page.txt", "source_hash": "URL/SHA256SUMS"}, True, DATA.decode()),
    "skip_verify": ({"source": "URL/page.txt", "skip_verify": True}, True, DATA.decode()),
    "template": (
        {"source": "URL/page.jinja", "skip_verify": True, "template": "jinja", "context": {"who": "me"}},
        True,
        "me\n",
    ),
    "second of a list": (
        {"source": ["URL/nothing", "URL/page.txt"], "source_hash": SHA256},
        True,
        DATA.decode(),
    ),
    "list with a hash of its own": ({"source": [{"URL/page.txt": "URL/SHA256SUMS"}]}, True, DATA.decode()),
    "no hash": ({"source": "URL/page.txt"}, False, "please set source_hash or set skip_verify to True"),
    "wrong hash": ({"source": "URL/page.txt", "source_hash": "1" * 64}, False, f"actual checksum ({SHA256})"),
    "not there": ({"source": "URL/nothing", "skip_verify": True}, False, "URL/nothing: HTTP 404"),
    "hash file not there": ({"source": "URL/page.txt", "source_hash": "URL/gone"}, False, "URL/gone: HTTP 404"),
    "hash file without one": ({"source": "URL/page.txt", "source_hash": "URL/none"}, False, "holds no digest"),
    "no such server": ({"source": "http://127.0.0.1:1/x", "skip_verify": True}, False, "http://127.0.0.1:1/x"),
    "password": ({"source": "http://me:secret@127.0.0.1:1/x", "skip_verify": True}, False, "<redacted>@127.0.0.1"),
}


def placed(value, url):
    if isinstance(value, str):
        return value.replace("URL", url)
    if isinstance(value, list):
        return [placed(each, url) for each in value]
    return {placed(key, url): placed(each, url) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", CASES)
def test_source_behind_http(name, server, ours_mounted):
    url, _asked = server
    args, works, left = CASES[name]
    told = ours_mounted.apply(Case(f"remote/{name}", "file.managed", placed(args, url), {}, {}))
    if works:
        assert [told[phase]["result"] for phase in ("would", "does", "again")] == [None, True, True]
        assert told["again"]["changes"] == {}
        assert told["left"] == {"f": f"0644 {left}"}
    else:
        assert [told[phase]["result"] for phase in ("would", "does", "again")] == [False] * 3
        assert placed(left, url) in told["does"]["comment"]
        assert "secret" not in str(told)
        assert told["left"] == {}


def test_what_is_in_the_cache_and_right_is_not_fetched_again(server, ours_mounted):
    url, asked = server
    args = {"source": f"{url}/page.txt", "source_hash": SHA256}
    ours_mounted.apply(Case("remote/once", "file.managed", args, {}, {}))
    assert asked == ["/page.txt"]


def test_too_much_is_not_taken(server, tmp_path):
    url, _ = server
    (tmp_path / "f").write_text("old")
    with pytest.raises(CommandError, match=r"page\.txt is larger than 3 bytes"):
        downloads.fetch(f"{url}/page.txt", tmp_path / "f", limit=3)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "old"}


def test_a_file_cut_short_is_not_taken(server, tmp_path, monkeypatch):
    url, _ = server
    monkeypatch.setitem(SERVED, "/cut", DATA)
    with pytest.raises(CommandError, match="/cut"):
        downloads.fetch(f"{url}/cut", tmp_path / "f", timeout=5)
    assert list(tmp_path.iterdir()) == []


def test_a_url_cannot_leave_the_cache(tmp_path):
    place = downloads.cached_at("http://host/a/../../..//etc/%2e%2e/x", tmp_path, "base")
    assert place.is_relative_to(tmp_path)
    assert ".." not in place.parts


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"win_owner": "x"}, "not supported: win_owner (Windows)"),
        ({"win_perms_reset": True}, "not supported: win_perms_reset (Windows)"),
        ({"win_inheritance": False}, "not supported: win_inheritance (Windows)"),
        ({"attrs": "i"}, "not supported: attrs: the host has no program lsattr"),
        ({"attrs": "xy"}, "attrs are letters of"),
        ({"selinux": True}, "selinux is a map of seuser, serole, setype, serange, not True"),
        ({"selinux": {"type": "t"}}, "selinux has no type; it has seuser"),
        ({"ignore_comment_characters": 1}, "ignore_comment_characters is a text"),
        ({"signed_by_any": "A"}, "signed_by_any: nothing asks for a signature"),
    ],
)
def test_what_cannot_be_says_so_and_touches_nothing(args, says, ours_mounted):
    told = ours_mounted.apply(Case("remote/refused", "file.managed", {"contents": "x", **args}, {}, {}))
    assert told["does"]["result"] is False
    assert says in told["does"]["comment"]
    assert told["left"] == {}


@pytest.mark.parametrize("scheme", ["ftp", "s3", "swift"])
def test_other_servers_are_refused_by_name(scheme, ours_mounted):
    source = f"{scheme}://host/file"
    told = ours_mounted.apply(Case("remote/scheme", "file.managed", {"source": source}, {}, {}))
    assert told["does"]["result"] is False
    assert f"not supported: the source {source}" in told["does"]["comment"]


@pytest.mark.parametrize(
    ("args", "results", "says"),
    [
        ({"source_hash": SHA256}, [None, True, True], "File is already cached to "),
        ({"source_hash": "URL/SHA256SUMS"}, [None, True, True], "File is already cached to "),
        ({"skip_verify": True}, [None, True, True], "File is cached to "),
        ({"source_hash": "1" * 64}, [None, False, False], f"the hash ({SHA256}) does not match"),
        ({}, [False, False, False], "please set source_hash"),
        ({"name": "URL/gone", "skip_verify": True}, [None, False, False], "Failed to cache URL/gone: HTTP 404"),
        ({"name": "salt://plain.txt"}, [True, True, True], "File is cached to TREE/plain.txt"),
        ({"name": "salt://gone.txt"}, [False, False, False], "there is no such file in saltenv 'base'"),
        ({"name": "ROOT/f"}, [True, True, True], "File ROOT/f is present on the minion"),
        ({"name": "ROOT/g"}, [False, False, False], "File ROOT/g is not present on the minion"),
        ({"name": "ROOT/f", "source_hash": SHA256}, [False, False, False], "does not match the specified hash"),
        ({"signature": "x", "use_etag": True}, [False, False, False], "'signature' is an invalid keyword argument"),
        ({"use_etag": True}, [None, True, True], "File is cached to "),
    ],
)
def test_cached(args, results, says, server, ours_mounted):
    url, _ = server
    given = placed({"name": "URL/page.txt", **args}, url)
    told = ours_mounted.apply(Case("remote/cached", "file.cached", given, {}, {}, have={"f": "x"}))
    assert [told[phase]["result"] for phase in ("would", "does", "again")] == results
    assert placed(says, url) in told["again"]["comment"]


def test_cached_and_forgotten(server, ours_mounted):
    url, _ = server
    ctx = Case("remote/kept", "file.cached", {"name": f"{url}/page.txt", "source_hash": SHA256}, {}, {})
    assert ours_mounted.apply(ctx)["does"]["changes"] == {"hash": {"old": None, "new": SHA256}}
    (ours_mounted.place).rmdir()
    told = ours_mounted.apply(Case("remote/forgotten", "file.not_cached", {"name": f"{url}/page.txt"}, {}, {}))
    assert [told[phase]["changes"] for phase in ("would", "does", "again")] == [{"deleted": True}] * 2 + [{}]
    assert told["again"]["comment"] == f"{url}/page.txt is not cached"
