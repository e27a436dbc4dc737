"""The messages between the minion's own processes, and the loads of jobs and returns: each key and kind is defined
here only.

main process -> zygote    ZygoteRequest, as msgpack: a map whose one key names the request
zygote -> main process    a kind (bytes), followed by its content:

    SPOOLED                          a jobber put a return into the spool
    JOB_DIED       code " " jid      a jobber of a published job ended with an exit code other than 0
    OWN_JOB_ENDED  jid               the jobber of a job that the minion started itself has ended
    BEACONS_ENDED                    the process that runs beacons has ended
    READY          msgpack           grains and pillar to match targets with: at the start and after each refresh

job or salt-call -> main process    ControlRequest, as msgpack, over the control socket; the answer is a map
"""

from __future__ import annotations

from typing import Required, TypedDict

SPOOLED = b"spooled"
JOB_DIED = b"died"
OWN_JOB_ENDED = b"ended"
BEACONS_ENDED = b"unwatched"
READY = b"ready"

#: All kinds that the zygote sends.
KINDS = (SPOOLED, JOB_DIED, BEACONS_ENDED, OWN_JOB_ENDED, READY)


class JobLoad(TypedDict, total=False):
    """A job to run: the load of a publication (docs/protocol.md#publications), or of a job that the minion started itself."""

    jid: Required[str]
    #: One function, or several that run one after the other.
    fun: Required[str | list[str]]
    #: Arguments of the function; of several functions a list of arguments for each.
    arg: Required[list[object]]
    tgt: object
    tgt_type: str
    #: Names of returners, separated by commas.
    ret: str
    metadata: object
    ret_config: object
    ret_kwargs: object
    #: True for a job that the minion started itself: by its schedule, or as startup_states.
    own: bool
    #: Name of the scheduled job.
    schedule: str
    #: Whether the job appears among the running jobs of this host. Default: True.
    jid_include: bool
    #: Whether the master receives the return; "nocache": the master receives it and does not store it. Default: True.
    return_job: bool | str


#: The load of the command ``_return`` (docs/protocol.md#returns). ``return`` is a keyword of Python, so the class has no body.
ReturnLoad = TypedDict(
    "ReturnLoad",
    {
        "cmd": str,
        "jid": str,
        "own_jid": str,
        "fun": object,
        "fun_args": list[object],
        "pid": int,
        "return": object,
        "retcode": object,
        "success": object,
        "out": str,
    },
    total=False,
)


class CredentialFields(TypedDict):
    """The credentials of a sign-in as a msgpack map, with the fields of ``saltwire.handshake.Credentials``, for the zygote."""

    aes: str
    session: str | None
    publish_port: int
    master_pub: str
    own: int


class ZygoteRequest(TypedDict, total=False):
    """A request of the minion's main process to the zygote. The map holds exactly one key."""

    #: Fork a jobber for a job that has an entry in the journal.
    journalled: JobLoad
    #: Fork a jobber for a job without an entry: the minion started it itself, or the journal cannot be written.
    job: JobLoad
    #: Use these credentials from now on.
    credentials: CredentialFields
    #: True: start the process that runs beacons. False: end it.
    watch: bool
    #: True: run the engines. False: end them.
    engines: bool
    #: End; wait at most this many seconds for jobbers.
    end: float


class Targeting(TypedDict):
    """The content of the zygote's READY message: the grains and pillar with which the main process matches targets."""

    grains: dict[str, object]
    pillar: dict[str, object]


class ControlRequest(TypedDict, total=False):
    """A request over the minion's control socket: ``verb`` names an operation on the scheduled jobs or the beacons.
    Keys that are not listed here are arguments of that operation.
    """

    #: "schedule" or "beacons".
    area: Required[str]
    #: What to do there: "list", "add", "delete" ...
    verb: str
    #: Beacons: the events that were seen since the last request.
    events: list[dict[str, object]]
    #: Beacons: names of those that asked to be disabled.
    done: list[str]
