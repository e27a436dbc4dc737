"""``webhook.notified`` against a server on loopback, in runs of our own engine where requisites are meant."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging

import pytest

from statecore.runtime.runtime import local_runtime
from tests.statecore.loopback_server import serve

SECRET_PATH = "/services/T0000/B0000/s3cr3t%20path"


@pytest.fixture
def web():
    with serve() as running:
        running.answers[SECRET_PATH] = (200, {}, b"ok")
        running.hook = running.url + SECRET_PATH
        running.place = running.url.removeprefix("http://")
        yield running


def test_a_message(web, plain):
    told = plain.state("webhook.notified", name="tell", url=web.hook, message="it is done")
    assert told == {
        "name": "tell",
        "result": True,
        "changes": {},
        "comment": f"{web.place} has been notified",
    }
    (asked,) = web.asked
    assert (asked.method, asked.path, json.loads(asked.body)) == ("POST", SECRET_PATH, {"text": "it is done"})
    assert asked.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("arguments", "body", "kind"),
    [
        ({}, '{"text": "tell"}', "application/json"),
        ({"payload": {"a": [1, "ü"]}}, '{"a": [1, "\\u00fc"]}', "application/json"),
        ({"payload": [1]}, "[1]", "application/json"),
        ({"payload": "plain ü"}, "plain ü", "text/plain; charset=utf-8"),
        ({"payload": "<x/>", "headers": {"Content-Type": "text/xml"}}, "<x/>", "text/xml"),
    ],
)
def test_what_is_sent(arguments, body, kind, web, plain):
    plain.state("webhook.notified", name="tell", url=web.hook, method="PUT", **arguments)
    (asked,) = web.asked
    assert (asked.method, asked.body.decode(), asked.headers["Content-Type"]) == ("PUT", body, kind)


def test_who_sends_is_proven(web, plain):
    plain.state("webhook.notified", name="tell", url=web.hook, token="t0ken", secret="k3y", message="x")
    (asked,) = web.asked
    signature = hmac.new(b"k3y", asked.body, hashlib.sha256).hexdigest()
    assert asked.headers["X-Hub-Signature-256"] == f"sha256={signature}"
    assert asked.headers["Authorization"] == "Bearer t0ken"


def test_test_mode_sends_nothing(web, plain):
    told = plain.state("webhook.notified", test=True, name="tell", url=web.hook)
    assert (told["result"], told["comment"], web.asked) == (None, f"{web.place} would be notified", [])


@pytest.mark.parametrize(
    ("statuses", "attempts", "result"),
    [
        ([503, 200], 2, True),
        ([429, 502, 200], 3, True),
        ([500] * 4, 4, False),
        ([403], 1, False),
        ([404], 1, False),
        ([302], 1, False),
    ],
)
def test_attempts(statuses, attempts, result, web, plain):
    answers = iter(statuses)
    web.answers[SECRET_PATH] = lambda asked: (next(answers), {}, b"")
    told = plain.state("webhook.notified", name="tell", url=web.hook, retry_interval=0.01)
    assert (told["result"], len(web.asked)) == (result, attempts)
    if not result:
        counted = f" ({attempts} attempts)" if attempts > 1 else ""
        assert told["comment"].startswith(f"{web.place} was not notified{counted}: HTTP {statuses[-1]}")


def test_the_answer_that_is_right_may_be_named(web, plain):
    web.answers[SECRET_PATH] = (202, {}, b"")
    assert plain.state("webhook.notified", name="t", url=web.hook, status=[201, 202])["result"] is True
    told = plain.state("webhook.notified", name="t", url=web.hook, status=200)
    assert (told["result"], told["comment"]) == (False, f"{web.place} was not notified: it answered with 202")


def test_nobody_is_there(plain):
    arguments = {"url": "http://127.0.0.1:1/s3cr3t", "retries": 1, "retry_interval": 0.01}
    told = plain.state("webhook.notified", name="tell", **arguments)
    assert told["comment"] == "127.0.0.1:1 was not notified (2 attempts): [Errno 111] Connection refused"


SECRETS = ("s3cr3t", "t0ken", "k3y", "pa55", "T0000", "h1dden")


@pytest.mark.parametrize("status", [200, 403, 500])
@pytest.mark.parametrize("test", [True, False])
def test_no_secret_is_told(status, test, web, plain, caplog):
    caplog.set_level(logging.DEBUG)
    web.answers[SECRET_PATH] = (status, {}, b"s3cr3t")
    url = web.hook.replace("http://", "http://me:pa55@") + "?key=h1dden"
    given = {"url": url, "token": "t0ken", "secret": "k3y", "headers": {"X-Api-Key": "h1dden"}, "retries": 0}
    told = plain.state("webhook.notified", test=test, name="tell", **given)
    everything = json.dumps(told) + caplog.text
    assert not [secret for secret in SECRETS if secret in everything]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"url": None}, "url is required"),
        ({"url": 5}, "url is required"),
        ({"url": "htp://x/s3cr3t"}, "url is not an http or https URL"),
        ({"url": "http://[s3cr3t"}, "url is not an http or https URL"),
        ({"method": "POST /"}, "method is POST, PUT, …, not 'POST /'"),
        ({"headers": "X: s3cr3t"}, "headers is a map"),
        ({"message": "a", "payload": "b"}, "message and payload"),
        ({"payload": {"a": object()}}, "payload cannot be written as JSON"),
        ({"status": "ok"}, "status is a number, or a list of them, not 'ok'"),
        ({"retries": -1}, "retries is a number, not -1"),
        ({"retries": 1.5}, "retries is a whole number, not 1.5"),
        ({"retry_interval": "x"}, "retry_interval is a number, not 'x'"),
        ({"timeout": True}, "timeout is a number, not True"),
    ],
)
def test_wrong_arguments(arguments, says, web, plain):
    told = plain.state("webhook.notified", **{"name": "t", "url": web.hook, **arguments})
    assert (told["result"], web.asked, "s3cr3t" in str(told)) == (False, [], False)
    assert told["comment"].startswith(says)


def test_headers_cannot_be_smuggled(web, plain):
    told = plain.state("webhook.notified", name="t", url=web.hook, headers={"X": "a\r\nY: b"})
    assert (told["result"], web.asked) == (False, [])


def run(tmp_path, states):
    """A run of the whole system: high data, as ``state.high`` takes it."""
    (tmp_path / "tree").mkdir(exist_ok=True)
    opts = {
        "id": "web1",
        "file_roots": {"base": [str(tmp_path / "tree")]},
        "pillar_roots": {},
        "cachedir": str(tmp_path / "cache"),
        "grains": {"os": "Debian", "os_family": "Debian"},
    }
    whole = {id_: {"__sls__": "s", "__env__": "base", **each} for id_, each in states.items()}
    return local_runtime(opts).call("state.high", [whole], {}).value


def test_it_is_sent_once_in_a_run_and_only_where_something_changed(web, tmp_path):
    hook = [{"url": web.hook}, {"message": "changed"}]
    states = {
        "one": {"test": ["succeed_with_changes"]},
        "two": {"test": ["succeed_without_changes"]},
        "told": {"webhook": ["notified", *hook, {"onchanges": [{"test": "one"}]}]},
        "told again": {"webhook": ["notified", *hook, {"onchanges": [{"test": "one"}]}]},
        "not told": {"webhook": ["notified", *hook[:1], {"message": "no"}, {"onchanges": [{"test": "two"}]}]},
    }
    running = run(tmp_path, states)
    comments = [entry["comment"] for entry in running.values() if entry["__id__"].startswith("told")]
    assert sorted(comments) == [f"{web.place} has been notified", f"{web.place} was notified in this run already"]
    assert [json.loads(each.body) for each in web.asked] == [{"text": "changed"}]
    assert all(entry["result"] for entry in running.values())


def test_what_is_watched_does_not_send_it_twice(web, tmp_path):
    states = {
        "one": {"test": ["succeed_with_changes"]},
        "told": {"webhook": ["notified", {"url": web.hook}, {"watch": [{"test": "one"}]}]},
    }
    running = run(tmp_path, states)
    assert all(entry["result"] for entry in running.values()), running
    assert len(web.asked) == 1
