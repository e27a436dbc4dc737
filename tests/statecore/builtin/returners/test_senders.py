"""Returners that write files, mails, syslog and web requests: to real receivers on this machine."""

from __future__ import annotations

import ast
import json
import re
import socket
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from statecore.model.errors import CommandError
from statecore.runtime.runtime import local_runtime
from tests.conftest import Oracle
from tests.statecore.loopback_server import Web, serve

RET: dict[str, Any] = {
    "id": "web1",
    "jid": "20260101000000000000",
    "fun": "test.ping",
    "fun_args": [],
    "return": True,
    "retcode": 0,
    "success": True,
}

STATES: dict[str, Any] = {
    "file_|-conf_|-/etc/<x>_|-managed": {
        "result": True,
        "changes": {"diff": "new & old", "mode": {"old": "0600", "new": "0644"}},
        "comment": "updated",
        "duration": 2.5,
        "start_time": "10:00:00",
        "__run_num__": 1,
        "__sls__": "web",
    },
    "pkg_|-curl_|-curl_|-installed": {
        "result": True,
        "changes": {},
        "comment": "is there",
        "duration": 1.0,
        "__run_num__": 0,
        "__sls__": "web",
    },
    "service_|-nginx_|-nginx_|-running": {
        "result": False,
        "changes": {},
        "comment": "cannot start",
        "duration": 4.0,
        "__run_num__": 2,
        "__sls__": "web",
    },
}
RUN = {**RET, "fun": "state.apply", "return": STATES, "retcode": 2, "success": False}


def called(plain: Any, name: str, *args: Any) -> Any:
    context = plain.context()
    served, function = plain.loader.function("returners", name, context)
    return served.bound(function, context)(*args)


# Files


def test_rawfile_json_appends_lines(plain: Any) -> None:
    plain.opts["rawfile_json.filename"] = "/returns"
    called(plain, "rawfile_json.returner", {**RET, "return": b"\xff"})
    called(plain, "rawfile_json.event_return", [{"tag": "a", "data": {"n": 1}}, {"tag": "b", "data": {}}])
    called(plain, "rawfile_json.event_return", [])
    lines = plain.context().host.path("/returns").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {**RET, "return": "\\xff"},
        {"tag": "a", "data": {"n": 1}},
        {"tag": "b", "data": {}},
    ]


def test_lines_of_several_writers_stay_whole(plain: Any) -> None:
    plain.opts["rawfile_json.filename"] = "/returns"
    long = {**RET, "return": "x" * 100_000}
    writers = [threading.Thread(target=called, args=(plain, "rawfile_json.returner", long)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = plain.context().host.path("/returns").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [long] * 8


def test_a_file_that_cannot_be_written_is_named(plain: Any) -> None:
    plain.opts["rawfile_json.filename"] = "/no/such/file"
    with pytest.raises(CommandError, match=r"rawfile_json\.filename: /no/such/file: No such file"):
        called(plain, "rawfile_json.returner", RET)


def test_local_prints(plain: Any, capsys: pytest.CaptureFixture[str]) -> None:
    called(plain, "local.returner", RET)
    called(plain, "local.event_return", [{"tag": "a"}])
    assert [ast.literal_eval(line) for line in capsys.readouterr().out.splitlines()] == [RET, [{"tag": "a"}]]


def test_multi_returner_writes_to_all_and_reads_from_all(plain: Any) -> None:
    directory = plain.extension_dir / "returners"
    directory.mkdir(parents=True)
    (directory / "broken.py").write_text("def returner(ret):\n    raise OSError('no room')\n")
    (directory / "reader.py").write_text("def get_jid(jid):\n    return {'web2': {'return': jid}}\n")
    plain.opts |= {"multi_returner": ["broken", "rawfile_json"], "rawfile_json.filename": "/returns"}
    with pytest.raises(CommandError, match="broken: no room"):
        called(plain, "multi_returner.returner", RET)
    assert json.loads(plain.context().host.path("/returns").read_text()) == RET
    plain.opts["multi_returner"] = ["reader"]
    assert called(plain, "multi_returner.get_jid", "7") == {"web2": {"return": "7"}}
    called(plain, "multi_returner.clean_old_jobs")
    del plain.opts["multi_returner"]
    with pytest.raises(CommandError, match="the option multi_returner is not set"):
        called(plain, "multi_returner.returner", RET)


# Syslog


@pytest.fixture(params=[socket.SOCK_DGRAM, socket.SOCK_STREAM], ids=["datagrams", "stream"])
def syslog(request: pytest.FixtureRequest, plain: Any) -> Iterator[Any]:
    """A syslog of the managed host: a function that returns the next message."""
    directory = plain.context().host.path("/dev")
    directory.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX, request.param) as server:
        server.settimeout(10)
        server.bind(str(plain.root / "dev/log"))
        if request.param == socket.SOCK_STREAM:
            server.listen()

        def read() -> str:
            if request.param == socket.SOCK_DGRAM:
                return server.recv(1 << 20).decode()
            with server.accept()[0] as connection:
                return connection.makefile("rb").read().decode().removesuffix("\0")

        yield read


@pytest.mark.parametrize(
    ("settings", "priority", "tag"),
    [
        ({"syslog.tag": "salt"}, 14, r"salt"),
        ({"syslog": {"tag": "x", "level": "LOG_ERR", "facility": "LOG_DAEMON"}}, 27, "x"),
        ({"syslog.tag": "x", "syslog.options": ["LOG_PID", "LOG_NDELAY"]}, 14, r"x\[\d+\]"),
    ],
)
def test_syslog(plain: Any, syslog: Any, settings: dict[str, Any], priority: int, tag: str) -> None:
    plain.opts |= settings
    called(plain, "syslog.returner", RET)
    found = re.fullmatch(rf"<{priority}>\w{{3}} [ \d]\d [\d:]{{8}} {tag}: (.*)", syslog())
    assert found is not None
    assert json.loads(found[1]) == RET


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"syslog.level": "LOUD"}, "syslog.level: syslog has no LOUD"),
        ({"syslog.options": ["syslog"]}, "syslog.options: syslog has no syslog"),
        ({"syslog.tag": "x" * 33}, "at most 32 characters"),
        ({}, "/dev/log of the host: No such file or directory"),
    ],
)
def test_syslog_says_what_is_wrong(plain: Any, settings: dict[str, Any], words: str) -> None:
    plain.opts |= settings
    with pytest.raises(CommandError, match=re.escape(words)):
        called(plain, "syslog.returner", RET)


# Mail


class Mailbox:
    """A mail server on loopback and what it got."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.receivers: list[list[str]] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.refused = ""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: list[str]) -> str:
        if address == self.refused:
            return "550 nobody here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        self.messages.append(message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default))
        self.receivers.append(list(envelope.rcpt_tos))
        return "250 OK"

    def login(self, server: Any, session: Any, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"good", handled=False)


@pytest.fixture
def mail(plain: Any) -> Iterator[Mailbox]:
    box = Mailbox()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    controller = Controller(
        box, hostname="127.0.0.1", port=port, authenticator=box.login, auth_require_tls=False, decode_data=False
    )
    controller.start()
    here = {
        "host": "127.0.0.1",
        "port": controller.port,
        "from": "salt@example.com",
        "to": "a@example.com,b@example.com",
    }
    plain.opts["smtp"] = here
    plain.opts["highstate"] = {
        "report_delivery": "smtp",
        "smtp_server": "127.0.0.1",
        "smtp_port": controller.port,
        "smtp_sender": "salt@example.com",
        "smtp_recipients": "a@example.com, b@example.com",
    }
    plain.grains["id"] = "web1"
    yield box
    controller.stop()


@pytest.fixture
def templates(plain: Any) -> Any:
    """The minion with real template engines."""
    runtime = local_runtime({**plain.opts, "host_root": str(plain.root)}, grains={"id": "web1"}, pillar={})
    plain.ports.render = runtime.context.templates.render
    return plain


def test_smtp_sends_the_return(templates: Any, mail: Mailbox) -> None:
    called(templates, "smtp.returner", {**RET, "return": "grün"})
    (message,) = mail.messages
    assert mail.receivers == [["a@example.com", "b@example.com"]]
    assert (message["From"], message["Subject"]) == ("salt@example.com", "Email from Salt")
    assert message["To"] == "a@example.com, b@example.com"
    assert message.get_content().replace("\r\n", "\n") == (
        "id: web1\nfunction: test.ping\nfunction args: []\njid: 20260101000000000000\nreturn: grün\n"
    )


def test_smtp_renders_subject_and_template(templates: Any, mail: Mailbox) -> None:
    templates.context().host.path("/mail.j2").write_text("{{ act }} {{ id }}\n")
    templates.opts["smtp"] |= {
        "subject": "key of {{ id }}\nBcc: x@example.com",
        "template": "/mail.j2",
        "fields": "act,none",
        "username": "salt",
        "password": "good",
    }
    called(
        templates,
        "smtp.event_return",
        [{"tag": "t", "data": {"act": "accept", "id": "web1"}}, {"tag": "u", "data": {}}],
    )
    (message,) = mail.messages
    assert message["Subject"] == "key of web1 Bcc: x@example.com accept"
    assert message["Bcc"] is None
    assert message.get_content().split() == ["accept", "web1"]
    assert mail.logins == [(b"salt", b"good")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"to": ""}, "settings are missing: smtp.to"),
        ({"host": "127.0.0.1", "port": 1}, "mail server 127.0.0.1:1"),
        ({"username": "salt", "password": "bad"}, "535"),
        ({"tls": True}, "STARTTLS"),
        ({"template": "/none"}, "smtp.template: /none: No such file"),
    ],
)
def test_smtp_says_what_is_wrong(templates: Any, mail: Mailbox, settings: dict[str, Any], words: str) -> None:
    templates.opts["smtp"] |= settings
    with pytest.raises(CommandError, match=re.escape(words)):
        called(templates, "smtp.returner", RET)
    assert mail.messages == []


def test_a_refused_receiver_is_an_error_and_the_others_get_the_mail(templates: Any, mail: Mailbox) -> None:
    mail.refused = "b@example.com"
    with pytest.raises(CommandError, match="nobody here"):
        called(templates, "smtp.returner", RET)
    assert mail.receivers == [["a@example.com"]]


# Reports of state runs


def test_highstate_reports_by_mail(plain: Any, mail: Mailbox) -> None:
    plain.opts["highstate"] |= {"report_format": "html", "smtp_failure_subject": "failed: {id}{nothing}"}
    called(plain, "highstate.returner", RUN)
    (message,) = mail.messages
    assert message["Subject"] == "failed: web1"
    assert message.get_content_type() == "text/html"
    page = message.get_content()
    assert "/etc/&lt;x&gt;" in page
    assert "new &amp; old" in page
    assert 'color: red">nginx</td>' in page
    assert page.count("<table") == page.count("</table>")


def test_highstate_writes_a_file(plain: Any) -> None:
    plain.opts["highstate"] = {"file_output": "/{id}.rpt", "success_function": "test.ping"}
    plain.grains["id"] = "web1"
    good = {key: state for key, state in STATES.items() if state["result"]}
    called(plain, "highstate.returner", {**RUN, "return": good})
    report = yaml.safe_load(plain.context().host.path("/web1.rpt").read_text())
    assert report[0] == {"extra": [{"test.ping": True}]}
    assert report[1]["stats"][0] == {"total": 2}


@pytest.mark.parametrize(
    ("settings", "states", "told"),
    [
        ({}, STATES, True),
        ({}, {key: STATES[key] for key in list(STATES)[1:2]}, False),
        ({"report_everything": True}, {key: STATES[key] for key in list(STATES)[1:2]}, True),
        ({"report_changes": "no"}, {}, False),
        ({}, "no states", False),
    ],
)
def test_which_runs_are_reported(plain: Any, settings: dict[str, Any], states: Any, told: bool) -> None:
    plain.opts["highstate"] = {**settings, "file_output": "/report"}
    called(plain, "highstate.returner", {**RUN, "return": states})
    assert plain.context().host.path("/report").exists() is told


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_report_is_salts(plain: Any, oracle: Oracle, tmp_path: Path, form: str) -> None:
    plain.opts["highstate"] = {"file_output": "/report", "report_format": form}
    called(plain, "highstate.returner", RUN)
    program = (
        "import json, sys; import salt.returners.highstate_return as module\n"
        "ret, form, place = json.load(sys.stdin)\n"
        "config = {'highstate.report_format': form, 'highstate.file_output': place}\n"
        "module.__salt__ = {'config.option': lambda name, default='': config.get(name, default)}\n"
        "module.__opts__, module.__grains__ = config, {}\n"
        "module.returner(ret)"
    )
    place = tmp_path / "theirs"
    oracle.run("python", "-c", program, stdin=json.dumps([RUN, form, str(place)]))
    assert plain.context().host.path("/report").read_text() == place.read_text()


# Slack


@pytest.fixture
def slack(plain: Any) -> Iterator[Web]:
    with serve() as web:
        web.answers["/hook"] = (200, {}, b"ok")
        plain.opts["slack_webhook.webhook"] = f"{web.url}/hook"
        plain.grains |= {"id": "web1", "localhost": "web1.example.com"}
        yield web


def posted(web: Web) -> list[list[dict[str, Any]]]:
    return [json.loads(parse_qs(one.body.decode())["payload"][0])["attachments"] for one in web.asked]


def test_slack_gets_a_run(plain: Any, slack: Web) -> None:
    plain.opts["slack_webhook.show_tasks"] = True
    assert called(plain, "slack_webhook.returner", RUN) is True
    ((head, unchanged, changed, failed),) = posted(slack)
    assert head["fallback"] == "web1 | Failed"
    assert head["text"] == "Function: state.apply\nJID: 20260101000000000000\nTotal: 3\nDuration: 0.01 secs"
    assert (unchanged["title"], changed["title"], failed["title"]) == ("Unchanged: 1", "Changed: 1", "Failed: 1")
    assert failed["fields"] == [{"value": "web.sls | nginx", "short": False}]


def test_slack_gets_returns_and_events(plain: Any, slack: Web) -> None:
    called(plain, "slack_webhook.returner", {**RET, "fun_args": ["ü"]})
    events = [{"tag": "a", "data": {"fun": "saltutil.find_job"}}, {"tag": "b", "data": {"fun": "x.y", "id": "db1"}}]
    called(plain, "slack_webhook.event_return", events)
    first, second = posted(slack)
    assert first[0]["text"] == "Function: test.ping\nFunction Args: ['ü']\nJID: 20260101000000000000\n"
    assert first[1] == {"color": "good", "title": "Return: True"}
    assert second[0]["author_name"] == "db1"


def test_slack_that_refuses_is_told(plain: Any, slack: Web) -> None:
    slack.answers["/hook"] = (404, {}, b"no_service")
    with pytest.raises(CommandError, match=r"Slack: .*(no_service|404)"):
        called(plain, "slack_webhook.returner", RET)
    del plain.opts["slack_webhook.webhook"]
    with pytest.raises(CommandError, match=r"slack_webhook\.webhook is not set"):
        called(plain, "slack_webhook.returner", RET)
