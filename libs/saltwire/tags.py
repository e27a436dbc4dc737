"""Every event tag, built and parsed here alone (protocol section 10.2)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass

AUTH = "salt/auth"
KEY = "salt/key"
AES_ROTATED = "key"
PRESENCE_PRESENT = "salt/presence/present"
PRESENCE_CHANGE = "salt/presence/change"
MINION_START_LEGACY = "minion_start"

#: Prefix of orders to the reactor, and of its answers.
REACTOR_ORDERS = "salt/reactors/manage/"

#: Prefix of all job events, for subscriptions.
JOBS = "salt/job/"


def fileserver_update(backend: str) -> str:
    """A backend of the file server was brought up to date."""
    return f"salt/fileserver/{backend}/update"


def job_new(jid: str) -> str:
    """A job was recorded."""
    return f"salt/job/{jid}/new"


def job_publish(jid: str) -> str:
    """A job was published."""
    return f"salt/job/{jid}/publish"


def job_ret(jid: str, minion: str) -> str:
    """A minion returned."""
    return f"salt/job/{jid}/ret/{minion}"


def job_start(jid: str, minion: str) -> str:
    """A minion began."""
    return f"salt/job/{jid}/start/{minion}"


def job_progress(jid: str, minion: str, number: int) -> str:
    """A minion finished one state of a run."""
    return f"salt/job/{jid}/prog/{minion}/{number}"


def job_state_error(jid: str, minion: str, fun: str) -> str:
    """A state of a run failed."""
    return f"salt/job/{jid}/sub/{minion}/error/{fun}"


def run(jid: str) -> str:
    """The stem of a runner's events."""
    return f"salt/run/{jid}"


def run_new(jid: str) -> str:
    """A runner began."""
    return f"salt/run/{jid}/new"


def run_ret(jid: str) -> str:
    """A runner ended."""
    return f"salt/run/{jid}/ret"


def wheel(jid: str) -> str:
    """The stem of a wheel call's events."""
    return f"salt/wheel/{jid}"


def minion_start(minion: str) -> str:
    """A minion is there."""
    return f"salt/minion/{minion}/start"


def minion_refresh(minion: str) -> str:
    """A minion's grains came anew."""
    return f"minion/refresh/{minion}"


@dataclass(frozen=True, slots=True)
class ParsedTag:
    """What a tag is about; fields that it does not have are empty."""

    kind: str
    jid: str = ""
    minion: str = ""


#: Kind -> its form. Minion ids hold no slash.
_FORMS: Mapping[str, re.Pattern[str]] = {
    "job_new": re.compile(r"salt/job/(?P<jid>[^/]+)/new"),
    "job_publish": re.compile(r"salt/job/(?P<jid>[^/]+)/publish"),
    "job_ret": re.compile(r"salt/job/(?P<jid>[^/]+)/ret/(?P<minion>[^/]+)"),
    "job_start": re.compile(r"salt/job/(?P<jid>[^/]+)/start/(?P<minion>[^/]+)"),
    "job_progress": re.compile(r"salt/job/(?P<jid>[^/]+)/prog/(?P<minion>[^/]+)/\d+"),
    "run_new": re.compile(r"salt/run/(?P<jid>[^/]+)/new"),
    "run_ret": re.compile(r"salt/run/(?P<jid>[^/]+)/ret"),
    "wheel_new": re.compile(r"salt/wheel/(?P<jid>[^/]+)/new"),
    "wheel_ret": re.compile(r"salt/wheel/(?P<jid>[^/]+)/ret"),
    "minion_start": re.compile(r"salt/minion/(?P<minion>[^/]+)/start"),
    "minion_refresh": re.compile(r"minion/refresh/(?P<minion>[^/]+)"),
    "beacon": re.compile(r"salt/beacon/(?P<minion>[^/]+)(?s:/.*)?"),
    "auth": re.compile("salt/auth"),
    "key": re.compile("salt/key"),
    "aes_rotated": re.compile("key"),
    "presence_present": re.compile("salt/presence/present"),
    "presence_change": re.compile("salt/presence/change"),
}


def parse(tag: str) -> ParsedTag | None:
    """What the tag is about; None for a tag of somebody else's."""
    for kind, form in _FORMS.items():
        found = form.fullmatch(tag)
        if found:
            return ParsedTag(kind, **found.groupdict())
    return None


#: Tags that are the master's own: a minion that fires them could make others believe things (section 7.6).
_MASTERS_OWN = (
    "salt/job/*/publish",
    "salt/job/*/new",
    "salt/job/*/return",
    "salt/key",
    "salt/cloud/*",
    "salt/run/*",
    "salt/cluster/*",
    "*salt/reactors/manage/*",
    "salt/wheel/*/new",
    "salt/wheel/*/return",
)


#: Where the tags of Salt's own begin; those of others are whatever their senders like.
_SALTS = ("salt/", "minion/")


def is_salts(tag: str) -> bool:
    """Whether the tag is one of Salt's own, whose readers take ``id`` in the data for who speaks."""
    return tag.startswith(_SALTS) or tag == MINION_START_LEGACY


def minion_may_fire(tag: str) -> bool:
    """Whether a minion's event may go onto the bus under this tag."""
    return not any(fnmatch.fnmatchcase(tag, pattern) for pattern in _MASTERS_OWN)
