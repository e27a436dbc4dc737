"""Finding 38.8: each route of the API has a verb and an entry in one table, and lets in whom the entry says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.api.application import ROUTES, ApiRoute, Entry
from saltern.kit.links.rights import Verb
from tests.security.api_before_worker import ApiBeforeWorker, external_auth
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

SHUT = [(route, method) for route in ROUTES if route.entry is not Entry.OPEN for method in route.methods]
WRITES = [pair for pair in SHUT if pair[0].verb is not Verb.READ]

#: A body that would do something, if it was carried out.
BODY = {"client": "local_async", "tgt": "*", "fun": "cmd.run", "arg": ["id"], "mid": "evil"}


def _name(pair: object) -> str:
    return pair.path if isinstance(pair, ApiRoute) else str(pair)


def _path(route: ApiRoute) -> str:
    return route.path.format(jid="20260101000000000000", mid="web1")


@pytest.fixture
def api(new_worker: NewWorker, tmp_path: Path) -> ApiBeforeWorker:
    worker = new_worker(external_auth=external_auth(tmp_path, {"eve": [], "wheel": ["@wheel"]}))
    worker.accept("web1")
    return ApiBeforeWorker(worker)


def _asked(api: ApiBeforeWorker, route: ApiRoute, method: str, **more: Any) -> Any:
    body = {"json": BODY} if method == "POST" else {}
    return api.ask(method, _path(route), **body, **more)


def _nothing_was_done(api: ApiBeforeWorker) -> None:
    worker = api.worker
    assert (worker.events, worker.runners, worker.store.publications.range_since(0)) == ([], [], [])
    assert worker.store.minion_keys.ids("accepted") == ["web1"]


@pytest.mark.parametrize(("route", "method"), SHUT, ids=_name)
@pytest.mark.parametrize("token", ["", "ab" * 20])
def test_nobody_comes_in_without_a_token(api: ApiBeforeWorker, route: ApiRoute, method: str, token: str) -> None:
    answer = _asked(api, route, method, headers={"X-Auth-Token": token} if token else {})
    assert answer.status_code in (400, 401)
    assert "web1" not in answer.text
    _nothing_was_done(api)


@pytest.mark.parametrize(("route", "method"), WRITES, ids=_name)
def test_a_user_without_a_row_changes_nothing(api: ApiBeforeWorker, route: ApiRoute, method: str) -> None:
    token = api.login("eve")
    api.worker.events.clear()
    _asked(api, route, method, headers={"X-Auth-Token": token})
    _nothing_was_done(api)


@pytest.mark.ordinary
def test_a_route_that_reads_has_no_body() -> None:
    assert [route.path for route in ROUTES if route.verb is Verb.READ and route.methods != ("GET",)] == []
