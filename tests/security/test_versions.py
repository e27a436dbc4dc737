"""Messages of versions older than ``minimum_auth_version``, which prove less."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.mworker.request_handler import BAD_LOAD
from saltwire.envelope import clear_request
from saltwire.pack import packb

pytestmark = pytest.mark.redis

Worker = Any


@pytest.mark.parametrize("version", [None, 0, 1, 2, -1, "2", "x", 2.9, [], True])
@pytest.mark.parametrize("cmd", ["_auth", "ping", "publish"])
def test_no_old_message_is_answered(worker: Worker, cmd: str, version: object) -> None:
    minion = worker.minion()
    load = {"cmd": cmd, "id": "web1", "nonce": "0" * 32, "pub": minion.key.public.pem}
    outer = {"enc": "clear", "load": load} | ({} if version is None else {"version": version})
    assert worker.handler.answer(b"minion", "", packb(outer)) == BAD_LOAD


@pytest.mark.ordinary
def test_an_old_sign_in_where_the_option_allows_it(new_worker: Any) -> None:
    lenient = new_worker(minimum_auth_version=2)
    minion = lenient.minion()
    load = {"cmd": "_auth", "id": "web1", "nonce": "0" * 32, "pub": minion.key.public.pem}
    assert lenient.handler.answer(b"minion", "", clear_request(load, version=2)) != BAD_LOAD
    assert lenient.handler.answer(b"minion", "", clear_request(load, version=1)) == BAD_LOAD
