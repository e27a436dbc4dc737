"""Finding 38.9: `api_acl` says from where a user may use the API. It is asked for every way in, by the name of external_auth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.links.rights import may_come_from
from saltern.mworker import eauth
from saltern.mworker.eauth.identity import Identity
from tests.security.api_before_worker import ApiBeforeWorker, credentials, external_auth
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

INSIDE, OUTSIDE = "10.0.0.1", "192.0.2.9"

ROWS: dict[str, Any] = {"ann": [".*", "@runner", "@wheel", "@jobs"], "bob": ["test.*"]}

#: ann may come from one address, everybody else from everywhere.
ACL = {"users": {"ann": [INSIDE], "*": ["*"]}}

PING = {"client": "local_async", "tgt": "*", "fun": "test.ping"}


def _api(new_worker: NewWorker, tmp_path: Path, acl: dict[str, Any], *, of_worker: bool = False) -> ApiBeforeWorker:
    more = {"rest_cherrypy": {"api_acl": acl}} if of_worker else {}
    worker = new_worker(external_auth=external_auth(tmp_path, ROWS), eauth_failures_per_minute=0, **more)
    worker.accept("web1")
    return ApiBeforeWorker(worker, **({} if of_worker else {"api_acl": acl}))


@pytest.fixture(params=["of the API", "of the workers"])
def api(request: Any, new_worker: NewWorker, tmp_path: Path) -> ApiBeforeWorker:
    return _api(new_worker, tmp_path, ACL, of_worker=request.param == "of the workers")


ANN = credentials("ann")

#: Way in with credentials -> method, path, body.
WAYS: dict[str, tuple[str, str, Any]] = {
    "a login": ("POST", "/login", ANN),
    "a login in a list": ("POST", "/login", [ANN]),
    "a token": ("POST", "/token", ANN),
    "tokens, the second of ann": ("POST", "/token", [credentials("bob"), ANN]),
    "a chunk": ("POST", "/run", {**PING, **ANN}),
    "a list of chunks": ("POST", "/run", [{**PING, **ANN}]),
    "a runner": ("POST", "/run", {"client": "runner_async", "fun": "manage.up", **ANN}),
    "a wheel function": ("POST", "/run", {"client": "wheel", "fun": "key.list_all", **ANN}),
    "new keys": ("POST", "/keys", {"mid": "evil", **ANN}),
    "a name in other letters": ("POST", "/login", {**ANN, "username": "ANN"}),
}


def _nothing_was_done(api: ApiBeforeWorker) -> None:
    assert api.worker.runners == []
    assert api.worker.store.publications.range_since(0) == []
    assert api.worker.store.minion_keys.ids("accepted") == ["web1"]


@pytest.mark.parametrize("way", WAYS)
def test_credentials_do_not_count_from_elsewhere(api: ApiBeforeWorker, way: str) -> None:
    method, path, body = WAYS[way]
    answer = api.ask(method, path, json=body, address=OUTSIDE)
    assert answer.status_code == 401
    assert "X-Auth-Token" not in answer.headers
    _nothing_was_done(api)


#: Way in with ann's token -> method, path, body.
WITH_A_TOKEN: dict[str, tuple[str, str, Any]] = {
    "a chunk": ("POST", "/", PING),
    "a chunk with its token": ("POST", "/run", PING),
    "jobs": ("GET", "/v1/jobs", None),
    "the fleet": ("GET", "/v1/fleet", None),
    "the parts": ("GET", "/v1/topology", None),
    "the session": ("GET", "/v1/session", None),
    "keys": ("GET", "/keys", None),
    "new keys": ("POST", "/keys", {"mid": "evil"}),
    "a webhook": ("POST", "/hook/deploy", {"a": 1}),
    "grains": ("GET", "/minions", None),
    "events": ("GET", "/events", None),
    "figures": ("GET", "/stats", None),
    "the end of the session": ("POST", "/logout", None),
}


@pytest.mark.parametrize("way", WITH_A_TOKEN)
def test_a_token_does_not_count_from_elsewhere(api: ApiBeforeWorker, way: str) -> None:
    """The token was made where it may be made, or by `salt -a -T`, which asks no api_acl."""
    token = api.login("ann", address=INSIDE)
    method, path, body = WITH_A_TOKEN[way]
    more: dict[str, Any] = {"headers": {"X-Auth-Token": token}}
    if path in ("/run", "/keys") and method == "POST":
        more, body = {}, {**body, "token": token}
    if body is not None:
        more["json"] = body
    api.worker.events.clear()
    answer = api.ask(method, path, address=OUTSIDE, **more)
    assert answer.status_code == 401
    assert api.worker.events == []
    _nothing_was_done(api)


#: Backend -> what is typed, and who that is.
NAMES = {
    "oidc, no name": ("oidc", "", Identity("ann", ("ops",))),
    "oidc, the name": ("oidc", "ann", Identity("ann", ("ops",))),
    "ldap, other letters": ("ldap", "Ann", Identity("Ann", ("ops",))),
    "ldap, a space behind": ("ldap", "ann ", Identity("ann ", ("ops",))),
    "ldap, a space before": ("ldap", " ann", Identity(" ann", ("ops",))),
    "pam": ("pam", "ann", Identity("ann")),
}


@pytest.mark.parametrize("path", ["/login", "/token", "/run"])
@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_that_of_external_auth(
    new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    backend, typed, identity = NAMES[name]
    monkeypatch.setattr(eauth, "check", lambda *given: identity)
    rows = {"ann": [".*"], "ops%": [".*"]}
    worker = new_worker(external_auth={backend: rows})
    worker.accept("web1")
    api = ApiBeforeWorker(worker, api_acl=ACL)
    body = {**PING, "username": typed, "password": "x", "eauth": backend}
    assert api.ask("POST", path, json=body, address=OUTSIDE).status_code == 401
    assert worker.store.publications.range_since(0) == []


@pytest.mark.parametrize(
    "users", [5, "ann", ["ann"], {"ann": "10.0.0.1"}, {"ann": None}, {"ann": []}, {"bob": ["*"]}], ids=str
)
def test_a_setting_that_is_not_understood_allows_nothing(new_worker: NewWorker, tmp_path: Path, users: Any) -> None:
    api = _api(new_worker, tmp_path, {"users": users})
    assert api.ask("POST", "/login", json=ANN, address=INSIDE).status_code == 401


# -------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
@pytest.mark.parametrize("path", ["/login", "/token", "/run"])
def test_from_inside_everything_works(api: ApiBeforeWorker, path: str) -> None:
    assert api.ask("POST", path, json={**PING, **ANN}, address=INSIDE).status_code == 200
    assert api.ask("POST", path, json={**PING, **credentials("bob")}, address=OUTSIDE).status_code == 200


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("acl", "user", "address", "may"),
    [
        ({}, "ann", "1.2.3.4", True),
        ({"users": {}}, "ann", "1.2.3.4", True),
        ({"users": {"ann": ["1.2.3.4"]}}, "ann", "1.2.3.4", True),
        ({"users": {"ann": ["1.2.3.4"]}}, "ann", "1.2.3.5", False),
        ({"users": {"ann": ["*"]}}, "ann", "1.2.3.5", True),
        ({"users": {"*": ["1.2.3.4"]}}, "ann", "1.2.3.4", True),
        ({"users": {"*": ["1.2.3.4"]}}, "ann", "::1", False),
        ({"users": {"*": ["*"], "ann": ["1.2.3.4"]}}, "ann", "::1", False),
        ({"users": {"bob": ["*"]}}, "ann", "1.2.3.4", False),
    ],
    ids=str,
)
def test_who_may_come_from_where(acl: dict[str, Any], user: str, address: str, may: bool) -> None:
    assert may_come_from(acl, user, address) is may


@pytest.mark.ordinary
def test_a_command_is_not_the_api(new_worker: NewWorker, tmp_path: Path) -> None:
    worker = new_worker(external_auth=external_auth(tmp_path, ROWS), rest_cherrypy={"api_acl": ACL})
    assert worker.control("login", "cli", **ANN)["name"] == "ann"
