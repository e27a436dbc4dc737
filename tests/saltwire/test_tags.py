"""Event tags: every one built has one meaning when parsed, and what a minion must not fire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltwire import tags
from saltwire.tags import ParsedTag, minion_may_fire, parse

JID = "20260101000000000000"

#: (tag, as docs/protocol.md#event-tags spells it, what it means).
BUILT: tuple[tuple[str, str, ParsedTag | None], ...] = (
    (tags.AUTH, "salt/auth", ParsedTag("auth")),
    (tags.KEY, "salt/key", ParsedTag("key")),
    (tags.AES_ROTATED, "key", ParsedTag("aes_rotated")),
    (tags.PRESENCE_PRESENT, "salt/presence/present", ParsedTag("presence_present")),
    (tags.PRESENCE_CHANGE, "salt/presence/change", ParsedTag("presence_change")),
    (tags.job_new(JID), f"salt/job/{JID}/new", ParsedTag("job_new", JID)),
    (tags.job_publish(JID), f"salt/job/{JID}/publish", ParsedTag("job_publish", JID)),
    (tags.job_ret(JID, "m.1"), f"salt/job/{JID}/ret/m.1", ParsedTag("job_ret", JID, "m.1")),
    (tags.job_start(JID, "m.1"), f"salt/job/{JID}/start/m.1", ParsedTag("job_start", JID, "m.1")),
    (tags.job_progress(JID, "m.1", 3), f"salt/job/{JID}/prog/m.1/3", ParsedTag("job_progress", JID, "m.1")),
    (tags.run(JID), f"salt/run/{JID}", None),
    (tags.run_new(JID), f"salt/run/{JID}/new", ParsedTag("run_new", JID)),
    (tags.run_ret(JID), f"salt/run/{JID}/ret", ParsedTag("run_ret", JID)),
    (tags.wheel(JID), f"salt/wheel/{JID}", None),
    (tags.wheel(JID) + "/new", f"salt/wheel/{JID}/new", ParsedTag("wheel_new", JID)),
    (tags.wheel(JID) + "/ret", f"salt/wheel/{JID}/ret", ParsedTag("wheel_ret", JID)),
    (tags.minion_start("m.1"), "salt/minion/m.1/start", ParsedTag("minion_start", "", "m.1")),
    ("salt/beacon/m.1/load/x", "salt/beacon/m.1/load/x", ParsedTag("beacon", "", "m.1")),
    ("salt/beacon/m.1", "salt/beacon/m.1", ParsedTag("beacon", "", "m.1")),
    (tags.MINION_START_LEGACY, "minion_start", None),
    (tags.minion_refresh("m.1"), "minion/refresh/m.1", ParsedTag("minion_refresh", "", "m.1")),
)


@pytest.mark.parametrize(("tag", "spelled", "meaning"), BUILT, ids=[row[1] for row in BUILT])
def test_tags(tag: str, spelled: str, meaning: ParsedTag | None) -> None:
    assert tag == spelled
    assert parse(tag) == meaning


@pytest.mark.parametrize(
    "tag",
    ["", "salt", "salt/job", f"salt/job/{JID}", f"salt/job/{JID}/ret", f"salt/job/{JID}/ret/", "salt/job//new",
     f"salt/job/{JID}/ret/a/b", f"salt/job/{JID}/prog/a/x", f"x/salt/job/{JID}/new", f"salt/job/{JID}/new/x",
     "salt/auth/x", "keys", "salt/auth\n", "my/own/tag"],
)  # fmt: skip
def test_tags_of_others(tag: str) -> None:
    assert parse(tag) is None


@given(st.text(max_size=60))
def test_any_text_may_be_a_tag(tag: str) -> None:
    parse(tag)
    minion_may_fire(tag, "m")
    parse(f"salt/job/{tag}")


@pytest.mark.parametrize(
    "tag",
    [f"salt/job/{JID}/prog/m/1", f"salt/job/{JID}/start/m", "salt/minion/m/start", "minion_start", "my/tag",
     "salt/beacon/m/load/", "salt/beacon/m/inotify//tmp/a\nb", f"salt/state_result/{JID}/m/my name", "salt/site/x",
     "salt/engines/hook/x", "SALT/KEY", "site.disk full", "größe/voll"],
)  # fmt: skip
def test_what_minions_fire(tag: str) -> None:
    """Tags that may not be fired: tests/security/test_events.py."""
    assert minion_may_fire(tag, "m")
