"""The option ``reactor`` as every role reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.reactor_rows import rows_of, wanted_tags

ORDERS = "salt/reactors/manage/*"


def test_rows_may_lie_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "reactions"
    place.write_text("- a/*:\n  - /one.sls\n")
    assert rows_of(str(place)) == [{"a/*": ["/one.sls"]}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("- a: [", "not valid YAML"),
        ("a: b", "must be a list"),
        ("- 5", "5 is no `tag glob"),
        ("- a: {}", "is no `tag glob"),
    ],
)
def test_what_is_no_table_says_so(tmp_path: Path, text: str | None, said: str) -> None:
    place = tmp_path / "reactions"
    if text is not None:
        place.write_text(text)
    with pytest.raises(ConfigError, match=said):
        rows_of(str(place))


@pytest.mark.parametrize(
    ("options", "tags"),
    [
        ({}, [ORDERS]),
        ({"reactor": [{"a/*": "/one.sls"}, {"b": []}], "events_kept": ["c/*"]}, ["a/*", "b", "c/*", ORDERS]),
        ({"event_return": "mine"}, ["*", ORDERS]),
        ({"event_return": ["mine"], "event_return_whitelist": ["x/*"]}, [ORDERS, "x/*"]),
        ({"master_job_cache": "mine"}, ["salt/job/*/new", "salt/job/*/ret/*", ORDERS]),
        ({"master_job_cache": "redis"}, [ORDERS]),
        # Without a returner nobody gets them.
        ({"event_return_whitelist": ["x/*"]}, [ORDERS]),
    ],
)
def test_which_events_are_kept(options: dict[str, Any], tags: list[str]) -> None:
    assert wanted_tags(MasterOptions(**options)) == sorted(tags)
