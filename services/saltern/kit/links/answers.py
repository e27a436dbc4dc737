"""The master's answers to operators' requests on port 4507, as types: one TypedDict for each command's value.

A client holds each answer against its type (``answer_fault``): a command may ask the masters of several regions, and the
answer of one that is taken over or of another version must not end the command for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, Protocol, TypedDict, overload

from saltern.kit.config import value_types


class TargetAnswer(TypedDict):
    """The master's answer to the operators' command ``targets``: the minions that a target matches, and its ids without a key."""

    #: Ids of the accepted minions that the target matches.
    minions: list[str]
    #: Ids in the target that have no accepted key.
    missing: list[str]


class PublishAnswer(TargetAnswer):
    """The master's answer to the operators' command ``publish``: the job's JID and minions, or the reason why there is no job."""

    #: JID of the job; None if no minion matched.
    jid: str | None
    #: Reason why ``jid`` is None.
    error: NotRequired[str]
    #: Ids of targeted minions that are away; missing if there are none.
    offline: NotRequired[list[str]]
    #: Milliseconds since 1970 until which the job waits for minions that are away.
    when_back_until: NotRequired[int]


class RunnerAnswer(TypedDict):
    """The master's answer to the operators' command ``runner``: JID and tag prefix of the runner that was started."""

    jid: str
    #: Prefix of the runner's event tags.
    tag: str


class MinionAnswer(TypedDict):
    """A minion's entry in the master's answer to the operators' command ``known``: key state, and age of its last request."""

    #: State of the minion's key; empty if the master has no key.
    key: str
    #: Seconds since the minion's last request; None: never.
    age: float | None


class MinionJobState(TypedDict):
    """A minion's entry in JobStatus: the state that the job has reached on the minion, with the time of each state."""

    state: str
    #: Milliseconds since 1970 at which the job reached this state on the minion.
    since: int
    late: bool
    #: State -> milliseconds since 1970.
    times: dict[str, int]
    #: Milliseconds since 1970 of the minion's last request; None: never. Missing if the minion has returned.
    seen: NotRequired[int | None]


class JobStatus(TypedDict):
    """The master's answer to the operators' command ``job_status``: a job, and its state on each minion.

    Times are milliseconds since 1970 by the master's clock.
    """

    jid: str
    fun: str | list[str]
    user: str
    tgt: object
    now: int
    created: int
    #: None while the job runs.
    ended: int | None
    complete: bool
    counts: dict[str, int]
    minions: dict[str, MinionJobState]


class FoundJob(TypedDict):
    """One job in a JobPage: its JID, load and counters."""

    jid: str
    load: dict[str, object]
    meta: dict[str, str]


class JobPage(TypedDict):
    """The master's answer to the operators' command ``find_jobs``: one page of jobs, and the cursor of the next page."""

    jobs: list[FoundJob]
    #: Filter ``cursor`` of the next page; empty on the last page.
    cursor: str


class ImportAnswer(TypedDict):
    """The value of the wheel function ``key.import``: the minion ids whose keys were stored, were there already,
    or were not stored.

    ``stored`` is {key list: minion ids}; ``same`` has the ids with an equal key; ``kept`` (another key stays)
    and ``refused`` are {minion id: reason}.
    """

    #: Key list -> minion ids.
    stored: dict[str, list[str]]
    same: list[str]
    #: Minion id -> reason.
    kept: dict[str, str]
    refused: dict[str, str]


class DataAnswer(TypedDict):
    """The value of the wheel function ``minions.import_data``: for each minion the names of the parts of its data
    (grains, pillar, mine) that were stored, the reason why its data was refused, or the first error of its pillar.
    """

    #: Minion id -> stored parts.
    stored: dict[str, list[str]]
    #: Minion id -> reason.
    refused: dict[str, str]
    #: Minion id -> error.
    pillar_errors: dict[str, str]


#: Command -> type of its answer.
ANSWERS: Mapping[str, Any] = {
    "publish": PublishAnswer,
    "targets": TargetAnswer,
    "runner": RunnerAnswer,
    "known": dict[str, MinionAnswer],
    "job_returns": dict[str, dict[str, object]],
    "job_status": JobStatus,
    "failed_of": dict[str, int],
    "find_jobs": JobPage,
}


def answer_fault(cmd: str, value: object) -> str:
    """Return as text why ``value`` is no answer to the command ``cmd``; "" if it is one, or if the command has no row in
    ANSWERS.
    """
    kind = ANSWERS.get(cmd)
    if kind is None or value_types.fits(value, kind):
        return ""
    return f"the master's answer to {cmd} is malformed: it must be {value_types.named(kind)}"


#: Key list (``minions``, ``minions_pre`` ...) -> minion ids.
KeyLists = dict[str, list[str]]

#: Key list -> {minion id: PEM or fingerprint}.
KeyTexts = dict[str, dict[str, str]]


class WheelCall(Protocol):
    """Calls a wheel function on the master with named arguments, and returns its value.

    Raises ControlError if the master refuses, and ControlTimeout.
    """

    @overload
    def __call__(
        self, fun: Literal["key.list_all", "key.list_match", "key.accept", "key.reject", "key.delete"], **kwarg: object
    ) -> KeyLists: ...
    @overload
    def __call__(
        self, fun: Literal["key.key_str", "key.finger", "key.master_key_str"], **kwarg: object
    ) -> KeyTexts: ...
    @overload
    def __call__(self, fun: Literal["sys.doc"]) -> dict[str, str]: ...
    @overload
    def __call__(self, fun: Literal["key.import"], **kwarg: object) -> ImportAnswer: ...
    @overload
    def __call__(self, fun: Literal["minions.import_data"], **kwarg: object) -> DataAnswer: ...
    @overload
    def __call__(self, fun: Literal["minions.export_data"], **kwarg: object) -> dict[str, bytes]: ...
    @overload
    def __call__(self, fun: str, **kwarg: object) -> object: ...
