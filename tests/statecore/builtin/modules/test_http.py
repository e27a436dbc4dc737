"""``http.query`` and its kin, asked of a server on loopback; real Salt asks the same."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from pathlib import Path

import pytest

from statecore.model.errors import CommandError, InvocationError
from tests.statecore.loopback_server import serve

#: Arguments beside the URL's path -> what comes back.
QUERIES = {
    "plain": ({"url": "/plain"}, {"body": "all is well\n"}),
    "status": ({"url": "/made", "status": True}, {"body": "made", "status": 201}),
    "text": ({"url": "/plain", "text": True}, {"body": "all is well\n", "text": "all is well\n"}),
    "charset": ({"url": "/latin"}, {"body": "grün"}),
    "empty": ({"url": "/empty", "status": True}, {"body": "", "status": 204}),
    "json": ({"url": "/json", "decode": True}, {"body": '{"a": [1, null]}', "dict": {"a": [1, None]}}),
    "yaml": ({"url": "/yaml", "decode": True}, {"body": "a: [1, x]\n", "dict": {"a": [1, "x"]}}),
    "xml": (
        {"url": "/xml", "decode": True},
        {
            "body": "<r><a>1</a><b><c>2</c><c>3</c><c>4</c></b></r>",
            "dict": [{"a": "1"}, {"c": ["2", {"c": "3"}, {"c": "4"}]}],
        },
    ),
    "auto is plain": ({"url": "/plain", "decode": True}, {"body": "all is well\n", "text": "all is well\n"}),
    "asked for yaml": (
        {"url": "/json", "decode": True, "decode_type": "yaml"},
        {"body": '{"a": [1, null]}', "dict": {"a": [1, None]}},
    ),
    "not found": ({"url": "/gone"}, {"status": 404, "error": "HTTP 404: Not Found", "body": "nothing here"}),
    "teapot": (
        {"url": "/teapot", "text": True},
        {"status": 418, "error": "HTTP 418: I'm a Teapot", "body": "short and stout"},
    ),
    "error as an answer": (
        {"url": "/down", "raise_error": False, "status": True, "text": True},
        {"body": "later", "text": "later", "status": 503},
    ),
    "moved": ({"url": "/moved", "status": True}, {"body": "all is well\n", "status": 200}),
    "moved, kept as it is": ({"url": "/kept", "method": "POST", "data": "x"}, {"body": "POST x"}),
    "post": ({"url": "/echo", "method": "POST", "data": "a text"}, {"body": "POST a text"}),
    "put": ({"url": "/echo", "method": "PUT", "data": "a text"}, {"body": "PUT a text"}),
    "fields": ({"url": "/echo", "method": "POST", "data": {"a": "1 2", "b": "ü"}}, {"body": "POST a=1+2&b=%C3%BC"}),
    "no form": (
        {"url": "/json", "decode": True, "decode_type": "toml"},
        None,
    ),
    "in test mode": ({"url": "/plain", "test": True}, {}),
    "form without a field": (
        {"url": "/echo", "method": "POST", "data": "x", "formdata": True, "backend": "requests"},
        {"error": "formdata_fieldname is required when formdata=True"},
    ),
}


@pytest.fixture
def web():
    silent = threading.Event()
    with serve(silent) as running:
        yield running
        silent.set()


@pytest.mark.parametrize("name", QUERIES)
def test_query(name, web, plain):
    arguments, told = QUERIES[name]
    answer = plain.call("http.query", **{**arguments, "url": web.url + arguments["url"]})
    if told is None:
        assert answer["error"].startswith("Invalid decode_type specified. Valid decode types are: ('json', 'xml'")
    else:
        assert answer == told


@pytest.mark.oracle
def test_queries_are_as_salt_has_them(web, plain, oracle, tmp_path):
    asked = [{**arguments, "url": web.url + arguments["url"]} for arguments, _ in QUERIES.values()]
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).with_name("salt_http.py"), tmp_path],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    salts = json.loads(done.stdout)
    ours = [plain.call("http.query", **arguments) for arguments in asked]
    pairs = {name: pair for name, pair in zip(QUERIES, zip(ours, salts, strict=True), strict=True) if name != "no form"}
    assert {name: ours for name, (ours, _) in pairs.items()} == {name: salts for name, (_, salts) in pairs.items()}


def test_headers_come_and_go(web, plain):
    (plain.root / "headers").write_text("X-File: from a file\nX-Url: http://x:1/\n")
    told = plain.call("http.query", f"{web.url}/plain", headers=True, header_file="/headers", agent="me")
    assert told["headers"]["Content-Type"] == "text/plain"
    assert {key: web.asked[0].headers[key] for key in ("X-File", "X-Url", "User-Agent")} == {
        "X-File": "from a file",
        "X-Url": "http://x:1/",
        "User-Agent": "me",
    }
    plain.call("http.query", f"{web.url}/plain", header_dict={"A": 1}, header_list=["B: 2", "nothing"])
    assert (web.asked[1].headers["A"], web.asked[1].headers["B"]) == ("1", "2")


def test_a_body_is_rendered(web, plain):
    plain.write("hook.txt", "{{ name }} is here")
    arguments = {"data_file": "salt://hook.txt", "data_render": True, "data_renderer": "jinja"}
    told = plain.call("http.query", f"{web.url}/echo", method="POST", template_dict={"name": "web1"}, **arguments)
    assert told["body"] == "POST web1 is here"
    (plain.root / "body").write_bytes(b"\xff\x00")
    plain.call("http.query", f"{web.url}/made", method="POST", data_file="/body")
    assert web.asked[-1].body == b"\xff\x00"


def test_a_body_is_a_file_of_a_form(web, plain):
    form = {"formdata": True, "formdata_fieldname": "up", "formdata_filename": 'a"b.txt'}
    plain.call("http.query", f"{web.url}/made", method="POST", data="content", **form)
    boundary = web.asked[0].headers["Content-Type"].partition("boundary=")[2]
    assert web.asked[0].body.split(b"\r\n") == [
        f"--{boundary}".encode(),
        b'Content-Disposition: form-data; name="up"; filename="a%22b.txt"',
        b"Content-Type: application/octet-stream",
        b"",
        b"content",
        f"--{boundary}--".encode(),
        b"",
    ]


def test_a_login_goes_to_its_server_alone(web, plain):
    with serve() as other:
        web.answers["/away"] = (302, {"Location": f"{other.url}/plain"}, b"")
        web.answers["/here"] = (302, {"Location": "/plain"}, b"")
        for path in ("/away", "/here"):
            login = {"username": "me", "password": "p:w"} if path == "/here" else {"auth": ["me", "p:w"]}
            plain.call("http.query", web.url + path, **login)
        expected = f"Basic {base64.b64encode(b'me:p:w').decode()}"
        assert [each.headers.get("Authorization") for each in web.asked] == [expected] * 3
        assert [each.headers.get("Authorization") for each in other.asked] == [None]


def test_parameters_and_port(web, plain):
    host, _, port = web.url.rpartition(":")
    plain.call("http.query", f"{host}/plain?a=1", params={"b": "2 &"}, port=int(port))
    assert web.asked[0].path == "/plain?a=1&b=2+%26"


def test_cookies_are_kept(web, plain):
    for path in ("cookie", "plain"):
        plain.call("http.query", f"{web.url}/{path}", cookies=True, cookie_jar="/jar", cookie_format="mozilla")
    assert web.asked[1].headers["Cookie"] == "who=me"
    assert (plain.root / "jar").read_text().startswith("# Netscape HTTP Cookie File")
    assert (plain.root / "jar").stat().st_mode & 0o777 == 0o600
    for path in ("session", "plain"):
        plain.call("http.query", f"{web.url}/{path}", persist_session=True)
    assert web.asked[3].headers["Cookie"] == "seat=4"
    (plain.root / "jar").write_text("no jar")
    with pytest.raises(CommandError, match="is not a cookie file in the format lwp"):
        plain.call("http.query", f"{web.url}/plain", cookies=True, cookie_jar="/jar")


def test_what_came_goes_into_files_of_the_host(web, plain):
    files = {"text_out": "/text", "headers_out": "/headers", "decode_out": "/decoded"}
    plain.call("http.query", f"{web.url}/json", decode=True, **files)
    assert (plain.root / "text").read_text() == (plain.root / "decoded").read_text() == '{"a": [1, null]}'
    assert "Content-Type: application/json\n" in (plain.root / "headers").read_text()


def test_packed_answers_and_bytes(web, plain):
    assert plain.call("http.query", f"{web.url}/gzip")["body"] == "packed"
    assert plain.call("http.query", f"{web.url}/bytes", decode_body=False)["body"] == b"\xff\xfe"
    with pytest.raises(CommandError, match="is not text"):
        plain.call("http.query", f"{web.url}/bytes")
    with pytest.raises(CommandError, match=r"127\.0\.0\.1 is not json"):
        plain.call("http.query", f"{web.url}/broken", decode=True)


def test_no_answer_is_told(web, plain):
    nobody = plain.call("http.query", "http://127.0.0.1:1/", status=True)
    assert nobody == {"status": 0, "error": "[Errno 111] Connection refused"}
    late = plain.call("http.query", f"{web.url}/silent", opts={"http_request_timeout": 0.2})
    assert late == {"status": 599, "error": "HTTP 599: Timeout during request"}
    much = plain.call("http.query", f"{web.url}/plain", opts={"http_max_body": 3})
    assert much == {"error": "the answer is larger than 3 bytes"}


def test_a_redirect_leads_to_servers_only(web, plain):
    assert "is not allowed" in plain.call("http.query", f"{web.url}/file")["error"]
    web.answers["/ftp"] = (302, {"Location": "ftp://127.0.0.1:1/x"}, b"")
    assert "no URL of http or https" in plain.call("http.query", f"{web.url}/ftp")["error"]


def test_a_proxy_is_asked(web, plain):
    host, _, port = web.url.removeprefix("http://").partition(":")
    proxy = {"proxy_host": host, "proxy_port": int(port), "proxy_username": "me", "proxy_password": "p@w"}
    plain.call("http.query", "http://far.test/plain", opts=proxy)
    assert web.asked[0].path == "http://far.test/plain"
    assert web.asked[0].headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'me:p@w').decode()}"
    plain.call("http.query", f"{web.url}/plain", opts={**proxy, "proxy_port": 1, "no_proxy": ["127.0.0.1"]})
    assert web.asked[1].path == "/plain"


def test_secrets_are_in_no_error(plain):
    told = plain.call(
        "http.query",
        "http://127.0.0.1 /",
        params={"token": "s3 cret"},
        data={"pw": "hunter"},
        hide_fields=["token", "pw"],
    )
    assert "error" in told
    assert not any(secret in str(told) for secret in ("s3", "hunter"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"url": "ftp://x/"}, "ftp://x/ is no URL of http or https"),
        ({"url": 5}, "url is a text"),
        ({"params": "x"}, "params is a map"),
        ({"header_dict": "x"}, "header_dict is a map"),
        ({"header_list": "x"}, "header_list is a list"),
        ({"header_dict": {"A": "1\r\nB: 2"}}, "contains a line break"),
        ({"data_file": "/none"}, "there is no file /none"),
        ({"auth": "me"}, "auth is a name and a password"),
        ({"cert": "/none"}, "cert: there is no file /none"),
        ({"cert": 4}, "cert is a path"),
        ({"ca_bundle": "/none"}, "ca_bundle: there is no file /none"),
        ({"cookies": True, "cookie_format": "x"}, "cookie_format is lwp or mozilla"),
        ({"stream": True, "handle": True}, "not supported: stream, handle"),
        ({"node": "master"}, "not supported: node"),
        ({"backend": "curl"}, "not supported: backend"),
        ({"methd": "POST"}, "http.query takes no argument methd"),
    ],
)
def test_wrong_arguments(arguments, says, plain):
    try:
        told = plain.call("http.query", **{"url": "http://127.0.0.1:1/", **arguments})["error"]
    except (InvocationError, CommandError) as error:
        told = str(error)
    assert says in told


def test_waiting(web, plain):
    answers = iter([(503, {}, b""), (503, {}, b""), (200, {}, b"up")])
    web.answers["/slow"] = lambda asked: next(answers)
    told = plain.call("http.wait_for_successful_query", f"{web.url}/slow", wait_for=20, request_interval=0.01)
    assert (told, len(web.asked)) == ({"body": "up"}, 3)
    told = plain.call("http.wait_for_successful_query", f"{web.url}/down", wait_for=0.02, request_interval=0.01)
    assert told["status"] == 503
    with pytest.raises(InvocationError, match="wait_for is a number of seconds, not 'x'"):
        plain.call("http.wait_for_successful_query", web.url, wait_for="x")


def test_authorities(web, plain):
    web.answers["/ca.pem"] = (200, {}, b"-----BEGIN CERTIFICATE-----\n")
    (plain.root / "mine").write_text("mine\n")
    (plain.root / "etc/ssl/certs").mkdir(parents=True)
    (plain.root / "etc/ssl/certs/ca-certificates.crt").write_text("old")
    plain.call("http.update_ca_bundle", source=f"{web.url}/ca.pem", merge_files="/mine")
    assert (plain.root / "etc/ssl/certs/ca-certificates.crt").read_text() == "-----BEGIN CERTIFICATE-----\n\nmine\n"
    for arguments, says in (
        ({}, "needs a source"),
        ({"source": f"{web.url}/plain"}, "does not contain a certificate"),
        ({"source": f"{web.url}/ca.pem", "merge_files": "/none"}, "there is no file /none"),
        ({"source": f"{web.url}/ca.pem", "merge_files": 1}, "merge_files is a path"),
    ):
        with pytest.raises((CommandError, InvocationError), match=says):
            plain.call("http.update_ca_bundle", **arguments)
    assert "mine" in (plain.root / "etc/ssl/certs/ca-certificates.crt").read_text()
