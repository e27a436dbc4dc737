"""Every command a worker answers, one row each: which door it comes in by, who may give it, what answers it.

A row without a policy does not exist (the field has no default), and a command without a row is not answered. Minion
commands are bound to the sender's own id before a handler sees them; control commands come from named CurveZMQ keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from saltern.mworker.commands import (
    control,
    events,
    files,
    jobs,
    keys,
    mine,
    missed,
    peers,
    pillar,
    received_files,
    returns,
    wheel,
)
from saltern.mworker.worker_context import WorkerContext

#: (desk, id of the minion, its load) -> what is sealed and sent back.
MinionHandler: TypeAlias = Callable[[WorkerContext, str, Mapping[str, Any]], Any]

#: (desk, name of the client's key, fields) -> the value of the answer. Raises kit.control.ControlError to refuse.
ControlHandler: TypeAlias = Callable[[WorkerContext, str, Mapping[str, Any]], Any]


class MinionPolicy(Enum):
    """Who may give a minion command. All of them need an accepted key and a session."""

    #: About the sender alone: its own returns, grains, mine.
    OWN = "own"
    #: Reads what is the same for every minion: files, options.
    SHARED = "shared"
    #: Reads what other minions offer.
    OFFERED = "offered"
    #: About others: the options peer and peer_run say who may ask for what.
    PEER = "peer"


class ControlPolicy(Enum):
    """Who may give a control command."""

    #: The function itself is looked up in the client's list (option control_acl).
    FUNCTION = "function"
    #: The client's list must hold @jobs.
    JOBS = "@jobs"
    #: The client's list must hold @runner.
    RUNNER = "@runner"
    #: The client's list must hold @wheel.
    WHEEL = "@wheel"
    #: Any known key.
    ANY = "any"


@dataclass(frozen=True)
class MinionCommand:
    """A row of MINION_COMMANDS."""

    policy: MinionPolicy
    handler: MinionHandler
    #: The handler is given the message's nonce: by it, it knows what it did already and must not do twice.
    once: bool = False
    #: Minions of message version 2 give it without a token, so that nobody knows who they are.
    unproved: bool = False


@dataclass(frozen=True)
class ControlCommand:
    """A row of CONTROL_COMMANDS."""

    policy: ControlPolicy
    handler: ControlHandler


#: Protocol section 7.1. ``_pillar`` has a reply of its own making (section 7.2) and is answered by ``door``.
MINION_COMMANDS: Mapping[str, MinionCommand] = {
    "_return": MinionCommand(MinionPolicy.OWN, returns.store_return, once=True, unproved=True),
    "_minion_event": MinionCommand(MinionPolicy.OWN, events.minion_event),
    "_file_envs": MinionCommand(MinionPolicy.SHARED, files.envs, unproved=True),
    "_file_list": MinionCommand(MinionPolicy.SHARED, files.file_list, unproved=True),
    "_file_list_emptydirs": MinionCommand(MinionPolicy.SHARED, files.empty_dirs, unproved=True),
    "_dir_list": MinionCommand(MinionPolicy.SHARED, files.dir_list, unproved=True),
    "_symlink_list": MinionCommand(MinionPolicy.SHARED, files.symlink_list, unproved=True),
    "_file_hash": MinionCommand(MinionPolicy.SHARED, files.file_hash, unproved=True),
    "_file_hash_and_stat": MinionCommand(MinionPolicy.SHARED, files.file_hash_and_stat, unproved=True),
    "_file_find": MinionCommand(MinionPolicy.SHARED, files.find, unproved=True),
    "_serve_file": MinionCommand(MinionPolicy.SHARED, files.serve, unproved=True),
    "_master_opts": MinionCommand(MinionPolicy.SHARED, files.master_opts, unproved=True),
    "_master_tops": MinionCommand(MinionPolicy.OWN, pillar.master_tops),
    "_mine": MinionCommand(MinionPolicy.OWN, mine.store),
    "_mine_get": MinionCommand(MinionPolicy.OFFERED, mine.get),
    "_mine_delete": MinionCommand(MinionPolicy.OWN, mine.delete),
    "_mine_flush": MinionCommand(MinionPolicy.OWN, mine.flush),
    "_register_resources": MinionCommand(MinionPolicy.OWN, events.register_resources),
    "minion_pub": MinionCommand(MinionPolicy.PEER, peers.pub, once=True),
    "pub_ret": MinionCommand(MinionPolicy.OWN, peers.pub_ret),
    "minion_publish": MinionCommand(MinionPolicy.PEER, peers.publish, once=True),
    "minion_runner": MinionCommand(MinionPolicy.PEER, peers.runner, once=True),
    "_file_recv": MinionCommand(MinionPolicy.OWN, received_files.receive),
    # Our own minions', beside the protocol.
    "_missed": MinionCommand(MinionPolicy.OWN, missed.missed),
    "_job_signs": MinionCommand(MinionPolicy.OWN, missed.job_signs),
    "revoke_auth": MinionCommand(MinionPolicy.OWN, keys.revoke_own),
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
    "runner": ControlCommand(ControlPolicy.RUNNER, control.runner),
    "wheel": ControlCommand(ControlPolicy.WHEEL, wheel.wheel),
}
