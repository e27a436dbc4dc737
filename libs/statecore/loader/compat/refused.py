"""Parts of Salt that the compatibility package does not provide, each with its replacement. The longest matching name counts."""

from __future__ import annotations

from collections.abc import Mapping

REFUSED: Mapping[str, str] = {
    "salt.cloud": "cloud providers are not part of this minion",
    "salt.cache": "what the master remembers is in Redis, out of reach of modules",
    "salt.beacons": "the loop of beacons belongs to the minion",
    "salt.channel": "a module does not speak to the master; fire an event with __salt__['event.send']",
    "salt.cli": "commands are programs; call a function through __salt__",
    "salt.client.ssh": "salt-ssh is not here yet",
    "salt.crypt": "keys of the wire are not given to modules",
    "salt.daemons": "daemons are not modules' business",
    "salt.engines": "engines are not part of this minion",
    "salt.ext.six": "Salt 3008 has it no more either; write Python 3",
    "salt.ext.tornado": "Salt 3008 has it no more either",
    "salt.fileserver": "ask for files of the tree through __salt__['cp.*']",
    "salt.grains": "grains are in __grains__",
    "salt.key": "keys are the master's",
    "salt.master": "a module runs on a minion",
    "salt.minion": "a module runs inside a minion that is there already: __opts__, __salt__",
    "salt.netapi": "the master's doors are not modules",
    "salt.output": "print nothing: return a value, and name its outputter in __outputter__",
    "salt.payload": "use msgpack or json",
    "salt.pillar": "pillar is in __pillar__; what a call adds to it is the argument pillar of state functions",
    "salt.proxy": "proxy minions are not here yet",
    "salt.renderers": "render with __salt__['slsutil.renderer']",
    "salt.returners": "a job's return is handed to returners by the minion",
    "salt.runners": "runners are the master's",
    "salt.state": "run states with __salt__['state.apply'], or call one through __states__",
    "salt.thorium": "Thorium is not here",
    "salt.transport": "a module does not speak to the master; fire an event with __salt__['event.send']",
    "salt.utils.event": "fire an event with __salt__['event.send']",
    "salt.utils.gitfs": "file servers are the master's",
    "salt.utils.master": "a module runs on a minion",
    "salt.utils.minions": "ask __salt__['match.*'] whether a target means this minion",
    "salt.utils.parsers": "commands are programs; call a function through __salt__",
    "salt.utils.reactor": "reactions are the master's",
    "salt.utils.schedule": "schedules are the minion's",
    "salt.utils.thin": "salt-ssh is not here yet",
    "salt.utils.vt": "run a program with __salt__['cmd.run_all']",
}
