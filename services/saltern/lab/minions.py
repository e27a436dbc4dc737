"""Connects to the lab's master and accepts the keys of the lab's minions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import zmq

from saltern.kit.config.master import ConfigError, load_master
from saltern.kit.links.answers import WheelCall
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout, connect_control, wheel_functions
from saltern.lab.plan import KeyStuckError, LabError, Paths

#: Seconds between two requests for the list of keys.
_LOOK = 0.2

#: Seconds to wait for one answer of the master.
_PATIENCE = 15.0

#: Lists of keys that only an operator can remove a minion from -> word for messages.
_STUCK: Mapping[str, str] = {"minions_rejected": "rejected", "minions_denied": "denied"}


@contextlib.contextmanager
def master(paths: Paths) -> Iterator[ControlClient]:
    """Connect to port 4507 of the lab's master for the ``with`` block, which gets the ControlClient.

    ConfigError, ControlError and ControlTimeout inside the block become LabError.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    client = None
    try:
        # An empty environment, because variables may name another master.
        options = load_master(str(paths.etc), env={})
        client = connect_control(options, config_dir=str(paths.etc), context=context)
        yield client
    except (ConfigError, ControlError, ControlTimeout) as error:
        raise LabError(f"the lab's master: {error}") from error
    finally:
        if client is not None:
            client.close()
        context.term()


def wheel_of(control: ControlClient) -> WheelCall:
    """Return a function that calls wheel functions over a connection to the master's port 4507."""
    return wheel_functions(control, _PATIENCE)


def accept_keys(wheel: WheelCall, paths: Paths, minions: Sequence[str], seconds: float) -> list[str]:
    """Accept the keys of the lab's minions as they arrive. Return the minions that were not accepted before.

    A key is accepted only if it equals the one in the minion's own directory, since any local user can reach the port.
    ``seconds``: longest wait. Raise LabError for a rejected or foreign key, and after the wait.
    """
    deadline = time.monotonic() + seconds
    accepted: list[str] = []
    while True:
        keys = wheel("key.list_all")
        for name, word in _STUCK.items():
            for minion in set(minions) & set(keys.get(name, ())):
                raise KeyStuckError(
                    f"the key of {minion} is {word} at the master. `salt-key -d {minion}` (with {paths.env} sourced) "
                    "forgets it; then `saltern lab up` again"
                )
        waiting = [minion for minion in minions if minion not in keys.get("minions", ())]
        if not waiting:
            return accepted
        pending = [minion for minion in waiting if minion in keys.get("minions_pre", ())]
        if pending:
            _check_own(wheel, paths, pending)
            wheel("key.accept", match=pending)
            accepted += pending
        elif time.monotonic() > deadline:
            logs = ", ".join(str(paths.log_of(f"minion-{minion}")) for minion in waiting)
            raise LabError(f"no key of {', '.join(waiting)} came to the master within {seconds:g} s; see {logs}")
        else:
            time.sleep(_LOOK)


def _check_own(wheel: WheelCall, paths: Paths, minions: Sequence[str]) -> None:
    shown = wheel("key.key_str", match=list(minions))
    for minion in minions:
        sent = shown.get("minions_pre", {}).get(minion, "")
        own = paths.pki_of(minion) / "minion.pub"
        if sent.split() != own.read_text("utf-8").split():
            raise LabError(
                f"the key that waits for acceptance as {minion} is not the one in {own}: another minion calls itself "
                f"{minion}. `salt-key -d {minion}` (with {paths.env} sourced) forgets it"
            )
