"""One job is one trace: from the operator's command through worker and publisher to the minion, and back to the worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.collector import Collector, collecting
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

#: What the shell that calls `salt` is a part of.
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

#: Name of a span -> its service, and whose part it is.
CHAIN = {
    "salt.cli.salt": ("salt-cli", ""),
    "salt.req.recv.publish": ("saltern-mworker", "salt.cli.salt"),
    "salt.pub.send": ("saltern-publisher", "salt.req.recv.publish"),
    "salt.minion.exec": ("saltern-minion", "salt.pub.send"),
    "salt.req.recv._return": ("saltern-mworker", "salt.minion.exec"),
}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture
def lab(new_lab: NewLab, collector: Collector) -> Lab:
    tracing = {"enabled": True, "endpoint": collector.endpoint}
    made = new_lab(options={"tracing": tracing}, minions=("web1",))
    place = made.root / "minions" / "web1" / "minion"
    place.write_text(place.read_text() + yaml.safe_dump({"tracing": tracing}))
    made.start_all()
    return made


def test_a_job_is_one_trace(lab: Lab, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    answer = lab.run("salt", "web1", "test.false")
    assert answer.code == 0, answer
    # Roles send what they measured every few seconds, and when they end.
    for role in ("mworker", "publisher"):
        lab.kill(role, 15)
    found = until(lambda: (spans := collector.of(TRACE)).keys() >= CHAIN.keys() and spans, SOON, "spans of every part")
    for name, (service, part_of) in CHAIN.items():
        assert found[name].service == service, name
        assert found[name].parent == (found[part_of].id if part_of else SPAN), name
    jid = found["salt.req.recv.publish"].attributes["salt.jid"]
    assert {found[name].attributes.get("salt.jid") for name in CHAIN} == {None, jid}
    assert found["salt.minion.exec"].attributes["salt.fun"] == "test.false"
    stored = lab.redis().hget(f"ret:{jid}", "web1")
    assert "traceparent" not in str(stored)
