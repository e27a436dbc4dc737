"""Event tags: every tag is built and parsed here. Source: docs/protocol.md#event-tags"""

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

#: Prefix of events by which operators change the reactor, and of the reactor's answers.
REACTOR_ORDERS = "salt/reactors/manage/"

#: Prefix of all events about jobs, for subscriptions.
JOBS = "salt/job/"


def fileserver_update(backend: str) -> str:
    """Tag of the event that a fileserver backend (such as roots or gitfs) was updated."""
    return f"salt/fileserver/{backend}/update"


def job_new(jid: str) -> str:
    """Tag of the event that a job was recorded."""
    return f"salt/job/{jid}/new"


def job_publish(jid: str) -> str:
    """Tag of the event that a job was published."""
    return f"salt/job/{jid}/publish"


def job_ret(jid: str, minion: str) -> str:
    """Tag of the event that a minion returned the result of a job."""
    return f"salt/job/{jid}/ret/{minion}"


def job_start(jid: str, minion: str) -> str:
    """Tag of the event that a minion started a job."""
    return f"salt/job/{jid}/start/{minion}"


def job_progress(jid: str, minion: str, number: int) -> str:
    """Tag of the event that a minion finished one state of a run; ``number`` is the state's number in the run."""
    return f"salt/job/{jid}/prog/{minion}/{number}"


def job_state_error(jid: str, minion: str, fun: str) -> str:
    """Tag of the event that a state of a run failed."""
    return f"salt/job/{jid}/sub/{minion}/error/{fun}"


def run(jid: str) -> str:
    """Common prefix of the event tags of one runner call: ``salt/run/<jid>``."""
    return f"salt/run/{jid}"


def run_new(jid: str) -> str:
    """Tag of the event that a runner started."""
    return f"salt/run/{jid}/new"


def run_ret(jid: str) -> str:
    """Tag of the event that a runner ended."""
    return f"salt/run/{jid}/ret"


def wheel(jid: str) -> str:
    """Common prefix of the event tags of one wheel call: ``salt/wheel/<jid>``."""
    return f"salt/wheel/{jid}"


def minion_start(minion: str) -> str:
    """Tag of the event that a minion started."""
    return f"salt/minion/{minion}/start"


def minion_refresh(minion: str) -> str:
    """Tag of the event that the master stored new grains of a minion."""
    return f"minion/refresh/{minion}"


@dataclass(frozen=True, slots=True)
class ParsedTag:
    """The kind of one of Salt's event tags, and the JID and minion id in it; a part that the tag lacks is ""."""

    kind: str
    jid: str = ""
    minion: str = ""


#: Map of kind to the form of its tags. Minion ids contain no slash.
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
    "state_result": re.compile(r"salt/state_result/(?P<jid>[^/]+)/(?P<minion>[^/]+)/(?s:.*)"),
    "auth": re.compile("salt/auth"),
    "key": re.compile("salt/key"),
    "aes_rotated": re.compile("key"),
    "presence_present": re.compile("salt/presence/present"),
    "presence_change": re.compile("salt/presence/change"),
}


def parse(tag: str) -> ParsedTag | None:
    """Return the kind, JID and minion id of one of Salt's event tags; None for any other tag."""
    for kind, form in _FORMS.items():
        found = form.fullmatch(tag)
        if found:
            return ParsedTag(kind, **found.groupdict())
    return None


#: Kinds of Salt's own tags that a minion may fire, each about itself.
_OF_MINIONS = frozenset({"job_start", "job_progress", "minion_start", "beacon", "state_result"})

#: Beginnings of tags that belong to the master, or that name a minion or a job. A minion may fire none of them except
#: the kinds of _OF_MINIONS: a tag that only resembles one of Salt's matches globs of the option ``reactor``, in which
#: ``*`` matches slashes, too. Source: docs/protocol.md#event-blacklist
_RESERVED = (
    "salt//",
    "salt/auth",
    "salt/batch",
    "salt/beacon",
    "salt/cloud",
    "salt/cluster",
    "salt/event",
    "salt/fileserver",
    "salt/job",
    "salt/key",
    "salt/minion",
    "salt/netapi",
    "salt/presence",
    "salt/reactors",
    "salt/run",
    "salt/state_result",
    "salt/stats",
    "salt/syndic",
    "salt/wheel",
    "minion/",
    "resource/",
    "saltern/",
    "minion_start",
)

#: Globs of other tags that only the master fires.
_MASTERS_OWN = ("*salt/reactors/manage/*",)

#: Longest tag of a minion's event, characters. Tags of beacons contain paths, which have at most 4096 bytes.
_LONGEST = 5000


def minion_may_fire(tag: str, minion: str) -> bool:
    """Return whether the master may put an event with this tag onto the bus for a minion."""
    if not 0 < len(tag) <= _LONGEST:
        return False
    if tag == MINION_START_LEGACY:
        return True
    about = parse(tag)
    if about is not None:
        return about.kind in _OF_MINIONS and about.minion == minion
    return (
        tag.isprintable()
        and not tag.startswith(_RESERVED)
        and not any(fnmatch.fnmatchcase(tag, pattern) for pattern in _MASTERS_OWN)
    )


#: Form of the tag ``<state>.<function>`` of a failed state; both parts come from the minion's return.
_STATE_FUNCTION = re.compile(r"[A-Za-z_][\w-]*\.[A-Za-z_]\w*", re.ASCII)


def is_state_function(tag: str) -> bool:
    """Return whether a text is the name of a state function, such as ``file.managed``."""
    return len(tag) <= _LONGEST and _STATE_FUNCTION.fullmatch(tag) is not None
