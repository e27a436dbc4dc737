"""Salt's modules that the package ``salt`` of users' modules does not have, each with the reason and the replacement.

The longest matching name counts. The text is part of the ModuleNotFoundError.
"""

from __future__ import annotations

from collections.abc import Mapping

REFUSED: Mapping[str, str] = {
    "salt.cloud": "Saltern has no cloud providers",
    "salt.beacons": "the minion runs the beacons itself",
    "salt.channel": "modules have no connection to the master; fire an event with __salt__['event.send']",
    "salt.cli": "command-line tools cannot be imported; call functions through __salt__",
    "salt.client.ssh": "salt-ssh is not implemented",
    "salt.daemons": "modules cannot control daemons",
    "salt.engines": "Saltern has no Salt engines",
    "salt.ext.six": "Salt 3008 does not have it either; write Python 3",
    "salt.ext.tornado": "Salt 3008 does not have it either",
    "salt.fileserver": "read files of the state tree with __salt__['cp.*']",
    "salt.grains": "grains are in __grains__",
    "salt.master": "modules run on a minion, not in the master",
    "salt.minion": "modules run inside a minion: use __opts__ and __salt__",
    "salt.netapi": "the master's API is not available to modules",
    "salt.proxy": "proxy minions are not implemented",
    "salt.renderers": "render with __salt__['slsutil.renderer']",
    "salt.returners": "the minion itself passes the return of a job to returners",
    "salt.runners": "runners run on the master",
    "salt.thorium": "Thorium is not implemented",
    "salt.transport": "modules have no connection to the master; fire an event with __salt__['event.send']",
    "salt.utils.gitfs": "fileservers run on the master",
    "salt.utils.parsers": "command-line tools cannot be imported; call functions through __salt__",
    "salt.utils.reactor": "reactions run on the master",
    "salt.utils.schedule": "the minion runs its schedule itself; change it with __salt__['schedule.*']",
}
