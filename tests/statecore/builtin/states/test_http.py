"""``http`` states: what a server has to answer, a table; Salt's verdicts on the same answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from statecore.builtin.states import http
from statecore.loader import Loader
from tests.statecore.loopback_server import serve

#: Arguments beside the URL's path -> result and comment; ``None`` for what Salt says otherwise (docs/differences.md).
CASES = {
    "text": ({"name": "/plain", "match": "is well"}, True, 'Match text "is well" was found.'),
    "no such text": ({"name": "/plain", "match": "is ill"}, False, 'Match text "is ill" was not found.'),
    "pattern": ({"name": "/plain", "match": "w.ll", "match_type": "pcre"}, True, 'Match pattern "w.ll" was found.'),
    "status": ({"name": "/made", "status": 201}, True, "Status 201 was found."),
    "other status": ({"name": "/made", "status": 200}, False, "Status 200 was not found."),
    "pattern of status": (
        {"name": "/made", "status": "2..", "status_type": "pcre"},
        True,
        'Status pattern "2.." was found.',
    ),
    "one of": ({"name": "/made", "status": [200, 201], "status_type": "list"}, True, "Status 201 was found."),
    "none of": (
        {"name": "/made", "status": [200, 202], "status_type": "list"},
        False,
        "Statuses [200, 202] were not found.",
    ),
    "both": (
        {"name": "/plain", "match": "well", "status": 200},
        True,
        'Match text "well" was found. Status 200 was found.',
    ),
    "half": (
        {"name": "/plain", "match": "ill", "status": 200},
        False,
        'Match text "ill" was not found. Status 200 was found.',
    ),
    "nothing asked": (
        {"name": "/plain"},
        False,
        "Either match text (match) or a status code (status) is required.",
    ),
}

#: What Salt judges otherwise.
OWN = {
    "status of a list is no match": (
        {"name": "/plain", "match": "well", "status": [500], "status_type": "list"},
        False,
        'Match text "well" was found. Statuses [500] were not found.',
    ),
    "error": (
        {"name": "/down", "match": "x"},
        False,
        'Match text "x" was not found. The server\'s answer: HTTP 503: Service Unavailable',
    ),
    "expected error": ({"name": "/down", "status": 503}, True, "Status 503 was found."),
}

WRONG = [
    ({"match": "x", "match_type": "glob"}, "match_type is one of string, pcre, not 'glob'"),
    ({"status": 1, "status_type": "set"}, "status_type is one of string, pcre, list, not 'set'"),
    ({"status": 200, "status_type": "list"}, "status is a list where status_type is list, not 200"),
    ({"match": "(", "match_type": "pcre"}, "match: '(' is not a valid regular expression"),
]


@pytest.fixture
def web():
    with serve() as running:
        yield running


def placed(web, arguments):
    return {**arguments, "name": web.url + arguments["name"]}


@pytest.mark.parametrize("name", [*CASES, *OWN])
def test_verdict(name, web, plain):
    arguments, result, comment = (CASES | OWN)[name]
    told = plain.state("http.query", **placed(web, arguments))
    assert (told["result"], told["comment"], told["changes"]) == (result, comment, {})


def test_what_was_answered_is_the_data(web, plain):
    told = plain.state("http.query", name=f"{web.url}/plain", status=200)
    assert told["data"] == {"body": "all is well\n", "text": "all is well\n", "status": 200}


def test_nothing_is_asked_in_test_mode_but_what_is_meant_for_it(web, plain):
    told = plain.state("http.query", test=True, name=f"{web.url}/plain", status=200)
    assert (told["result"], told["comment"], web.asked) == (None, "The query would be made (TEST MODE)", [])
    told = plain.state("http.query", test=True, name=f"{web.url}/plain", status=201, test_url=f"{web.url}/made")
    assert told["comment"] == f"Status 201 was found. (TEST MODE, TEST URL WAS: {web.url}/made)"
    assert [each.path for each in web.asked] == ["/made"]


@pytest.mark.parametrize(("arguments", "says"), WRONG)
def test_wrong_arguments(arguments, says, web, plain):
    for state in ("query", "wait_for_successful_query"):
        told = plain.state(f"http.{state}", name=web.url, **arguments)
        assert (told["result"], web.asked) == (False, [])
        assert told["comment"].startswith(says)


def test_an_argument_that_the_query_has_not_is_ignored(web, plain, caplog):
    told = plain.state("http.query", name=f"{web.url}/plain", status=200, methd="POST")
    assert (told["result"], len(web.asked)) == (True, 1)
    assert "http.query ignores the arguments methd" in caplog.text


def test_the_query_takes_what_the_function_takes():
    (served,) = Loader().built_in("modules")["http"]
    own = {each for each in served.parameters("query").named if each != "url"}
    assert http.OPTIONS["query"] - {"request_interval"} == own - {"status", "match"} | {"status"}


def test_waiting(web, plain):
    answers = iter([(200, {}, b"not yet"), (200, {}, b"ready")] * 2)
    web.answers["/slow"] = lambda asked: next(answers)
    waiting = {"name": f"{web.url}/slow", "match": "ready", "request_interval": 0.01}
    told = plain.state("http.wait_for_successful_query", wait_for=20, **waiting)
    assert (told["result"], len(web.asked)) == (True, 2)
    told = plain.state("http.wait_for_successful_query", wait_for=0, **waiting)
    assert (told["result"], len(web.asked)) == (False, 3)
    told = plain.state("http.wait_for_successful_query", test=True, wait_for=20, **waiting)
    assert (told["result"], len(web.asked)) == (None, 3)
    for argument in ("wait_for", "request_interval"):
        told = plain.state("http.wait_for_successful_query", name=web.url, status=200, **{argument: "x"})
        assert told["comment"] == f"{argument} is a number of seconds, not 'x'"
    web.answers["/up"] = lambda asked: (200, {}, b"") if len(web.asked) > 4 else (503, {}, b"")
    told = plain.state("http.query", name=f"{web.url}/up", status=200, wait_for=20, request_interval=0.01)
    assert (told["result"], len(web.asked)) == (True, 5)


@pytest.mark.oracle
def test_verdicts_are_salts(web, oracle, tmp_path):
    asked = [placed(web, arguments) for arguments, _, _ in CASES.values()]
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).with_name("salt_http_states.py"), tmp_path],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    told = {name: [result, said.strip()] for name, (result, said) in zip(CASES, json.loads(done.stdout), strict=True)}
    assert told == {name: [result, comment] for name, (_, result, comment) in CASES.items()}
