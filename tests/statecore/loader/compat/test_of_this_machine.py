"""Functions of the compatibility package that touch something: a server, the running context, processes, files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import InvocationError
from statecore.runtime.runtime import Runtime, local_runtime

MODULE = """
import salt.template
import salt.utils.context
import salt.utils.files
import salt.utils.http
import salt.utils.msgpack
import salt.utils.process
import salt.utils.pycrypto
import salt.utils.systemd
import salt.utils.templates
import salt.utils.network

VALUE = 'own'


def query(url, **kwargs):
    return salt.utils.http.query(url, **kwargs)


def rendered(text, **names):
    return salt.utils.templates.JINJA(text, from_str=True, to_str=True, context=names)


def rendered_to_file(path):
    made = salt.utils.templates.TEMPLATE_REGISTRY['jinja'](path, context={'who': 'file'})
    with salt.utils.files.fopen(made['data']) as file:
        return made['result'], file.read()


def compiled(text):
    return salt.template.compile_template(':string:', None, 'jinja|yaml', input_data=text)


def booted():
    return [salt.utils.systemd.booted(__context__), 'salt.utils.systemd.booted' in __context__]


def not_a_context():
    return salt.utils.systemd.booted([])


def running(pid):
    return salt.utils.process.os_is_running(pid)


def password():
    return salt.utils.pycrypto.secure_password(12, punctuation=False), salt.utils.pycrypto.secure_password(3, chars='x')


def packed():
    return salt.utils.msgpack.unpackb(salt.utils.msgpack.packb({'a': 1}))


def _seen():
    return VALUE


def injected():
    with salt.utils.context.func_globals_inject(_seen, VALUE='other', MORE=1):
        inside = _seen()
    return inside, _seen(), 'MORE' in globals()


def interfaces():
    return '127.0.0.1' in salt.utils.network.ip_addrs(include_loopback=True), sorted(salt.utils.network.interfaces())


def files(folder):
    path = folder + '/deep/file'
    with salt.utils.files.set_umask(0o077):
        import os
        os.makedirs(folder + '/deep')
    with salt.utils.files.flopen(path, 'w') as file:
        file.write('one')
    salt.utils.files.copyfile(path, folder + '/copy')
    salt.utils.files.recursive_copy(folder + '/deep', folder + '/other')
    told = sorted(each[len(folder):] for each in salt.utils.files.list_files(folder))
    salt.utils.files.rm_rf(folder + '/deep')
    salt.utils.files.remove(path)
    return told
"""


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        code = 404 if self.path.startswith("/missing") else 200
        body = f'{{"path": "{self.path}", "auth": "{self.headers.get("Authorization", "")}"}}'.encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test says what it asked."""


@pytest.fixture
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/own.py").write_text(MODULE)
    return local_runtime(
        {"id": "web1", "module_dirs": [str(tmp_path / "modules")], "cachedir": str(tmp_path / "cache")}
    )


def test_requests(runtime: Runtime, server: str) -> None:
    query = runtime.functions["own.query"]
    answer = query(f"{server}/a", params={"x": 1}, decode=True, status=True, headers=True, username="u", password="p")
    assert (answer["status"], answer["dict"]) == (200, {"path": "/a?x=1", "auth": "Basic dTpw"})
    assert answer["headers"]["Content-Type"] == "application/json"
    assert query(f"{server}/b")["body"].startswith('{"path": "/b"')
    assert query(f"{server}/c", method="POST", data={"k": "v"}, header_list=["A: b"]) == {"body": "k=v"}
    missing = query(f"{server}/missing")
    assert (missing["status"], missing["error"]) == (404, "HTTP 404: Not Found")
    assert query(f"{server}/missing", raise_error=False, status=True)["status"] == 404


def test_requests_that_cannot_be_made(runtime: Runtime) -> None:
    query = runtime.functions["own.query"]
    assert "error" in query("http://127.0.0.1:9/x")
    assert query("file:///etc/passwd") == {"error": "file:///etc/passwd is not a URL with http:// or https://"}
    with pytest.raises(InvocationError, match="not supported: cert, stream"):
        query("http://127.0.0.1:9/x", stream=True, cert="x")


def test_templates(runtime: Runtime, tmp_path: Path) -> None:
    assert runtime.functions["own.rendered"]("{{ who }} {{ grains.id }}", who="me") == {
        "result": True,
        "data": "me web1",
    }
    failed = runtime.functions["own.rendered"]("{{ 1 / 0 }}")
    assert (failed["result"], "division by zero" in failed["data"]) == (False, True)
    (tmp_path / "page").write_text("to {{ who }}")
    assert runtime.functions["own.rendered_to_file"](str(tmp_path / "page")) == (True, "to file")
    assert runtime.functions["own.compiled"]("a: {{ 1 + 1 }}") == {"a": 2}


def test_the_rest(runtime: Runtime, tmp_path: Path) -> None:
    call = runtime.functions
    assert call["own.booted"]() == [runtime.grains["init"] == "systemd", True]
    with pytest.raises(InvocationError, match="context must be a dictionary"):
        call["own.not_a_context"]()
    assert (call["own.running"](os.getpid()), call["own.running"](str(2**22 + 1))) == (True, False)
    password, only = call["own.password"]()
    assert (len(password), password.isalnum(), only) == (12, True, "xxx")
    assert call["own.packed"]() == {"a": 1}
    assert call["own.injected"]() == ("other", "own", False)
    there, names = call["own.interfaces"]()
    assert (there, "lo" in names) == (True, True)
    folder = tmp_path / "files"
    folder.mkdir()
    assert call["own.files"](str(folder)) == ["", "/copy", "/deep", "/deep/file", "/other", "/other/file"]
    assert not (folder / "deep").exists()
