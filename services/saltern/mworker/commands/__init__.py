"""Tables of the commands that a worker answers: for each command who may send it, and the function that answers it.

MINION_COMMANDS come from port 4506; a handler gets the proved id of the sender. CONTROL_COMMANDS come from port 4507; a
handler gets the Sender: the operator's CurveZMQ key, or the user of a token. Each row must name a policy. A command
without a row is not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from saltern.mworker.commands import (
    connections,
    control,
    events,
    files,
    jobs,
    keys,
    logins,
    mine,
    missed,
    overview,
    peers,
    pillar,
    received_files,
    returns,
    wheel,
)
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext

#: (context, minion id, load) -> value that is encrypted and sent back.
MinionHandler: TypeAlias = Callable[[WorkerContext, str, Mapping[str, object]], object]

#: (context, sender, fields) -> value of the answer. Raises ControlError to refuse.
ControlHandler: TypeAlias = Callable[[WorkerContext, Sender, Mapping[str, object]], object]


class MinionPolicy(Enum):
    """The rule that a minion's command must satisfy: whose data (the minion's own, other minions') the command reads or changes.

    Every command of a minion also needs an accepted key and a session.
    """

    #: Data of the sender: its returns, grains, mine.
    OWN = "own"
    #: Data that is the same for every minion: files, options.
    SHARED = "shared"
    #: Data that other minions offer: the mine.
    OFFERED = "offered"
    #: Jobs on other minions and runners; the options peer and peer_run allow them.
    PEER = "peer"


class Repeat(Enum):
    """How a worker treats a minion's message that it got before, for example because somebody recorded it and sent it again."""

    #: The command changes nothing: the message gets its answer again.
    HARMLESS = "harmless"
    #: The command recognises the job, the file's offset or the request by itself. Messages older than ``request_window``
    #: are refused.
    RECOGNISED = "recognised"
    #: The message is answered as if it had worked, and changes nothing. Messages older than ``request_window`` are refused.
    ANSWERED = "answered"


class ControlPolicy(Enum):
    """The rule that an operator's command must satisfy: which entry of the operator's access list allows it."""

    #: The operator's access list (control_acl, publisher_acl) must allow the function.
    FUNCTION = "publish"
    #: The operator's access list must contain @jobs.
    JOBS = "@jobs"
    #: The operator's access list must contain @runner.
    RUNNER = "@runner"
    #: The operator's access list must contain @wheel.
    WHEEL = "@wheel"
    #: The operator's access list must contain anything: events are for everybody who may do something.
    EVENTS = "@events"
    #: Every known operator key may use the command.
    ANY = "any"
    #: Only the reqserver itself sends the command; no right allows it to others.
    REQSERVER = "reqserver"


@dataclass(frozen=True)
class MinionCommand:
    """A row of MINION_COMMANDS: the policy and the handler of one minion command, and the treatment of a repeated message."""

    policy: MinionPolicy
    handler: MinionHandler
    repeat: Repeat
    #: The answer to a repeated message, for Repeat.ANSWERED.
    repeated: object = None
    #: The handler gets the message's nonce, so that it can recognise a repeated message and do its work only once.
    once: bool = False
    #: Accepted from minions of message version 2 without a token, whose id is not proved.
    unproved: bool = False
    #: The message is recorded as the minion's presence, in the same step in Redis as its nonce where it has one.
    heard: bool = False


@dataclass(frozen=True)
class ControlCommand:
    """A row of CONTROL_COMMANDS: the access policy of one operators' command, and the function that answers it."""

    policy: ControlPolicy
    handler: ControlHandler


#: Source: docs/protocol.md#command-table. ``_pillar`` has its own form of reply and is answered by ``RequestHandler``.
MINION_COMMANDS: Mapping[str, MinionCommand] = {
    "_return": MinionCommand(MinionPolicy.OWN, returns.store_return, Repeat.RECOGNISED, once=True, unproved=True),
    "_minion_event": MinionCommand(MinionPolicy.OWN, events.minion_event, Repeat.ANSWERED, heard=True),
    "_file_envs": MinionCommand(MinionPolicy.SHARED, files.envs, Repeat.HARMLESS, unproved=True),
    "_file_list": MinionCommand(MinionPolicy.SHARED, files.file_list, Repeat.HARMLESS, unproved=True),
    "_file_list_emptydirs": MinionCommand(MinionPolicy.SHARED, files.empty_dirs, Repeat.HARMLESS, unproved=True),
    "_dir_list": MinionCommand(MinionPolicy.SHARED, files.dir_list, Repeat.HARMLESS, unproved=True),
    "_symlink_list": MinionCommand(MinionPolicy.SHARED, files.symlink_list, Repeat.HARMLESS, unproved=True),
    "_file_hash": MinionCommand(MinionPolicy.SHARED, files.file_hash, Repeat.HARMLESS, unproved=True),
    "_file_hash_and_stat": MinionCommand(MinionPolicy.SHARED, files.file_hash_and_stat, Repeat.HARMLESS, unproved=True),
    "_file_find": MinionCommand(MinionPolicy.SHARED, files.find, Repeat.HARMLESS, unproved=True),
    "_serve_file": MinionCommand(MinionPolicy.SHARED, files.serve, Repeat.HARMLESS, unproved=True),
    "_master_opts": MinionCommand(MinionPolicy.SHARED, files.master_opts, Repeat.HARMLESS, unproved=True),
    "_master_tops": MinionCommand(MinionPolicy.OWN, pillar.master_tops, Repeat.HARMLESS),
    "_mine": MinionCommand(MinionPolicy.OWN, mine.store, Repeat.ANSWERED, True),
    "_mine_get": MinionCommand(MinionPolicy.OFFERED, mine.get, Repeat.HARMLESS),
    "_mine_delete": MinionCommand(MinionPolicy.OWN, mine.delete, Repeat.ANSWERED, True),
    "_mine_flush": MinionCommand(MinionPolicy.OWN, mine.flush, Repeat.ANSWERED, True),
    "_register_resources": MinionCommand(MinionPolicy.OWN, events.register_resources, Repeat.HARMLESS),
    "minion_pub": MinionCommand(MinionPolicy.PEER, peers.pub, Repeat.RECOGNISED, once=True),
    "pub_ret": MinionCommand(MinionPolicy.OWN, peers.pub_ret, Repeat.HARMLESS),
    "minion_publish": MinionCommand(MinionPolicy.PEER, peers.publish, Repeat.RECOGNISED, once=True),
    "minion_runner": MinionCommand(MinionPolicy.PEER, peers.runner, Repeat.RECOGNISED, once=True),
    "_file_recv": MinionCommand(MinionPolicy.OWN, received_files.receive, Repeat.ANSWERED, True),
    # Commands of Saltern's own minions.
    "minion_wheel": MinionCommand(MinionPolicy.PEER, peers.wheel_function, Repeat.ANSWERED, {}),
    "_missed": MinionCommand(MinionPolicy.OWN, missed.missed, Repeat.RECOGNISED),
    "_job_signs": MinionCommand(MinionPolicy.OWN, missed.job_signs, Repeat.RECOGNISED),
    "revoke_auth": MinionCommand(MinionPolicy.OWN, keys.revoke_own, Repeat.ANSWERED, True),
}

CONTROL_COMMANDS: Mapping[str, ControlCommand] = {
    "ping": ControlCommand(ControlPolicy.ANY, control.ping),
    "publish": ControlCommand(ControlPolicy.FUNCTION, control.publish),
    "targets": ControlCommand(ControlPolicy.JOBS, control.targets),
    "known": ControlCommand(ControlPolicy.JOBS, keys.known),
    "job_returns": ControlCommand(ControlPolicy.JOBS, control.job_returns),
    "job_status": ControlCommand(ControlPolicy.JOBS, jobs.job_status),
    "failed_of": ControlCommand(ControlPolicy.JOBS, jobs.failed_of),
    "find_jobs": ControlCommand(ControlPolicy.JOBS, jobs.find_jobs),
    "job_matrix": ControlCommand(ControlPolicy.JOBS, overview.job_matrix),
    "job_call": ControlCommand(ControlPolicy.JOBS, overview.job_call),
    "fleet": ControlCommand(ControlPolicy.JOBS, overview.fleet),
    "topology": ControlCommand(ControlPolicy.JOBS, overview.topology),
    "runner": ControlCommand(ControlPolicy.RUNNER, control.runner),
    "wheel": ControlCommand(ControlPolicy.WHEEL, wheel.wheel),
    "connections": ControlCommand(ControlPolicy.REQSERVER, connections.report),
    "figures": ControlCommand(ControlPolicy.REQSERVER, overview.report_figures),
    # Users of external_auth. Whoever knows a password or a token may use the first three.
    "login": ControlCommand(ControlPolicy.ANY, logins.login),
    "logout": ControlCommand(ControlPolicy.ANY, logins.logout),
    "token_info": ControlCommand(ControlPolicy.ANY, logins.token_info),
    "kept_events": ControlCommand(ControlPolicy.EVENTS, logins.kept_events),
    "hook": ControlCommand(ControlPolicy.ANY, logins.hook),
}
