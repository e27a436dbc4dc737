"""What a stock master says of a day with a stock minion is what is recorded in events.json.

``SALTERN_RECORD=1`` writes it anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.interop import acts
from tests.interop.stock import Bus, StockMaster, StockMinion, need_namespace, venv_of
from tests.roles.lab import STARTUP, until

pytestmark = [pytest.mark.interop, pytest.mark.roles]

RECORDED = Path(__file__).with_name("events.json")


@dataclass
class Place:
    """What a stock minion has to know of a stock master: in the stead of a lab of ours."""

    root: Path
    port: dict[str, int]
    environment: dict[str, str] = field(default_factory=lambda: os.environ | {"TERM": "dumb"})


def test_the_recording_is_true(tmp_path: Path) -> None:
    need_namespace()
    venv = venv_of("3008.3")
    (tmp_path / "log").mkdir()
    tree = tmp_path / "tree"
    for path, text in acts.TREE.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    master = StockMaster(tmp_path, venv, {**acts.OPTIONS, "file_roots": {"base": [str(tree)]}, "timeout": 30})
    place = Place(tmp_path, {"ret_port": master.ret_port, "publish_port": master.publish_port})
    minion = StockMinion(acts.MINION, venv, place)  # type: ignore[arg-type]  # of a lab it needs no more
    bus = None
    try:
        master.start()
        bus = Bus.of_stock(master)
        minion.start()
        until(lambda: acts.MINION in master.pending(), 2 * STARTUP, "the minion's key waits")
        for words, tag in acts.ACTS:
            master.run(*words, seconds=4 * STARTUP)
            if tag:
                bus.await_event(tag)
        for tag in ("salt/presence/present", "salt/presence/change", "key"):
            bus.await_event(tag)
        heard = acts.reduced(bus.events())
    finally:
        if bus is not None:
            bus.close()
        minion.end()
        master.end()
    if os.environ.get("SALTERN_RECORD"):
        rows = ",\n".join(f" {json.dumps(tag)}: {json.dumps(names)}" for tag, names in heard.items())
        RECORDED.write_text(f"{{\n{rows}\n}}\n")
    assert heard == json.loads(RECORDED.read_text())
