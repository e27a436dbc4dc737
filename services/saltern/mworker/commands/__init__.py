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

from saltern.kit.links.rights import Verb
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
    #: The operator's access list must contain anything that lets it look at minions or jobs.
    LOOK = "any right"
    #: The operator's access list must contain @runner.
    RUNNER = "@runner"
    #: The operator's access list must contain @wheel.
    WHEEL = "@wheel"
    #: The operator's access list must contain @events or @jobs.
    EVENTS = "@events"
    #: Every known operator key may use the command.
    ANY = "any"
    #: Only the reqserver itself sends the command; no right allows it to others.
    REQSERVER = "reqserver"


class Owner(Enum):
    """What the owner of a job means to an operator's command."""

    #: The command is about no job.
    NONE = "none"
    #: The sender becomes the owner of the job that the command starts.
    SENDER = "sender"
    #: The owner sees the job whole, others what ``job_views`` shows them.
    VIEW = "view"
    #: The owner may use the command for the own job without a further right: runners of ``CHANGE_A_JOB`` and of
    #: orchestrations (``owned_jobs``). Every other call starts a job, which belongs to the sender.
    OWN_JOB = "own job"


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
    """A row of CONTROL_COMMANDS: the access policy of one operators' command, the function that answers it, what the command
    does, and what the owner of a job means to it.
    """

    policy: ControlPolicy
    handler: ControlHandler
    verb: Verb
    owner: Owner


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
    "ping": ControlCommand(ControlPolicy.ANY, control.ping, Verb.READ, Owner.NONE),
    "publish": ControlCommand(ControlPolicy.FUNCTION, control.publish, Verb.RUN, Owner.SENDER),
    "targets": ControlCommand(ControlPolicy.LOOK, control.targets, Verb.READ, Owner.NONE),
    "known": ControlCommand(ControlPolicy.LOOK, keys.known, Verb.READ, Owner.NONE),
    "job_returns": ControlCommand(ControlPolicy.LOOK, jobs.job_returns, Verb.READ, Owner.VIEW),
    "job_status": ControlCommand(ControlPolicy.LOOK, jobs.job_status, Verb.READ, Owner.VIEW),
    "failed_of": ControlCommand(ControlPolicy.LOOK, jobs.failed_of, Verb.READ, Owner.VIEW),
    "find_jobs": ControlCommand(ControlPolicy.LOOK, jobs.find_jobs, Verb.READ, Owner.VIEW),
    "job_matrix": ControlCommand(ControlPolicy.LOOK, overview.job_matrix, Verb.READ, Owner.VIEW),
    "job_call": ControlCommand(ControlPolicy.LOOK, overview.job_call, Verb.READ, Owner.VIEW),
    "fleet": ControlCommand(ControlPolicy.LOOK, overview.fleet, Verb.READ, Owner.NONE),
    "topology": ControlCommand(ControlPolicy.JOBS, overview.topology, Verb.READ, Owner.NONE),
    "runner": ControlCommand(ControlPolicy.RUNNER, control.runner, Verb.RUN, Owner.OWN_JOB),
    "wheel": ControlCommand(ControlPolicy.WHEEL, wheel.wheel, Verb.MANAGE, Owner.NONE),
    "connections": ControlCommand(ControlPolicy.REQSERVER, connections.report, Verb.MANAGE, Owner.NONE),
    "figures": ControlCommand(ControlPolicy.REQSERVER, overview.report_figures, Verb.MANAGE, Owner.NONE),
    # Users of external_auth. Whoever knows a password or a token may use the first three.
    "login": ControlCommand(ControlPolicy.ANY, logins.login, Verb.RUN, Owner.NONE),
    "logout": ControlCommand(ControlPolicy.ANY, logins.logout, Verb.RUN, Owner.NONE),
    "token_info": ControlCommand(ControlPolicy.ANY, logins.token_info, Verb.READ, Owner.NONE),
    "kept_events": ControlCommand(ControlPolicy.EVENTS, logins.kept_events, Verb.READ, Owner.NONE),
    "hook": ControlCommand(ControlPolicy.ANY, logins.hook, Verb.RUN, Owner.NONE),
}
