"""Settings of network cards, by ethtool: Salt's ``ethtool`` execution module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.program_runs import output_lines

#: Words of ``ethtool -g`` -> keys of Salt.
_RING: Mapping[str, str] = {"RX": "rx", "RX Mini": "rx_mini", "RX Jumbo": "rx_jumbo", "TX": "tx"}

_OFFLOADS: Mapping[str, str] = {
    "scatter-gather": "scatter_gather",
    "tcp-segmentation-offload": "tcp_segmentation_offload",
    "udp-fragmentation-offload": "udp_fragmentation_offload",
    "generic-segmentation-offload": "generic_segmentation_offload",
}

#: Keys of Salt that ``ethtool -c`` and ``-C`` have otherwise; the others have dashes for underscores.
_COALESCE: Mapping[str, str] = {
    "adaptive_rx": "adaptive-rx",
    "adaptive_tx": "adaptive-tx",
    "rx_frames_irg": "rx-frames-irq",
    "stats_block_usecs": "stats-block-usecs",
    "sample_interval": "sample-interval",
    "pkt_rate_low": "pkt-rate-low",
    "pkt_rate_high": "pkt-rate-high",
}

_PAUSE = ("autoneg", "rx", "tx")

_FEATURES = ("rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro", "rxvlan", "txvlan", "ntuple", "rxhash")


def available(ctx: Context) -> str | None:
    """Return None if the host has ethtool; else return the reason as text."""
    return None if ctx.host.which("ethtool") else "the host has no ethtool"


def show_ring(ctx: Context, devname: str) -> dict[str, int] | str:
    """Return the sizes and maximal sizes of a network card's ring buffers: a map of rx, rx_max, rx_mini, rx_jumbo,
    tx, tx_max ... to numbers; "Not supported" if the card has none.

    CLI Example:

        salt '*' ethtool.show_ring eth0
    """
    done = ctx.host.run(["ethtool", "-g", devname])
    return "Not supported" if done.retcode else parse_ring(done.stdout)


def set_ring(ctx: Context, devname: str, **kwargs: object) -> dict[str, int] | str:
    """Set the sizes of a network card's ring buffers. Return all sizes, as ``ethtool.show_ring`` does; the text "Not
    supported" or "Invalid arguments" if this fails.

    rx, rx_mini, rx_jumbo, tx
        numbers

    CLI Example:

        salt '*' ethtool.set_ring eth0 rx=256 tx=64
    """
    now = show_ring(ctx, devname)
    if isinstance(now, str):
        return now
    todo = {key: value for key, value in kwargs.items() if key in _RING.values() and now.get(key) != value}
    words = [word for key, value in todo.items() for word in (key.replace("_", "-"), str(value))]
    if todo and ctx.host.run(["ethtool", "-G", devname, *words]).retcode:
        return "Invalid arguments"
    return show_ring(ctx, devname)


def show_coalesce(ctx: Context, devname: str) -> dict[str, int] | str:
    """Return how a network card joins interrupts: a map of rx_usecs, rx_frames, adaptive_rx (0 or 1) ... to numbers;
    "Not supported" if the card cannot join them.

    CLI Example:

        salt '*' ethtool.show_coalesce eth0
    """
    done = ctx.host.run(["ethtool", "-c", devname])
    return "Not supported" if done.retcode else parse_coalesce(done.stdout)


def set_coalesce(ctx: Context, devname: str, **kwargs: object) -> dict[str, int] | str:
    """Set how a network card joins interrupts. Return all settings, as ``ethtool.show_coalesce`` does; the text "Not
    supported" or "Invalid arguments" if this fails.

    adaptive_rx, adaptive_tx
        0 or 1
    rx_usecs, rx_frames, rx_usecs_irq, tx_usecs, tx_frames, sample_interval ...
        numbers

    CLI Example:

        salt '*' ethtool.set_coalesce eth0 rx_usecs=3 adaptive_rx=1
    """
    now = show_coalesce(ctx, devname)
    if isinstance(now, str):
        return now
    todo = {key: value for key, value in kwargs.items() if key in now and now[key] != value}
    words = [word for key, value in todo.items() for word in _coalesce_words(key, value)]
    if todo and ctx.host.run(["ethtool", "-C", devname, *words]).retcode:
        return "Invalid arguments"
    return show_coalesce(ctx, devname)


def show_driver(ctx: Context, devname: str) -> dict[str, str] | str:
    """Return a map with ``driver`` and ``bus_info`` of a network card; "Not implemented" if ethtool cannot read
    them.

    CLI Example:

        salt '*' ethtool.show_driver eth0
    """
    done = ctx.host.run(["ethtool", "-i", devname])
    if done.retcode:
        return "Not implemented"
    rows = dict(line.partition(":")[::2] for line in lines_of(done.stdout))
    return {"driver": rows.get("driver", "").strip(), "bus_info": rows.get("bus-info", "").strip()}


def show_offload(ctx: Context, devname: str) -> dict[str, str]:
    """Return which work a network card does instead of the kernel: a map of scatter_gather,
    tcp_segmentation_offload, udp_fragmentation_offload and generic_segmentation_offload to "on", "off" or "not
    supported".

    CLI Example:

        salt '*' ethtool.show_offload eth0
    """
    done = ctx.host.run(["ethtool", "-k", devname])
    features = {} if done.retcode else parse_features(done.stdout)
    return {
        key: "not supported" if name not in features else "on" if features[name]["on"] else "off"
        for name, key in _OFFLOADS.items()
    }


def set_offload(ctx: Context, devname: str, **kwargs: object) -> dict[str, str] | str:
    """Set whether a network card does TCP segmentation instead of the kernel. Return all such settings, as
    ``ethtool.show_offload`` does; "Not supported" if this fails.

    tcp_segmentation_offload
        on or off

    CLI Example:

        salt '*' ethtool.set_offload eth0 tcp_segmentation_offload=on
    """
    if "tcp_segmentation_offload" in kwargs:
        word = "on" if kwargs["tcp_segmentation_offload"] in ("on", True) else "off"
        if ctx.host.run(["ethtool", "-K", devname, "tso", word]).retcode:
            return "Not supported"
    return show_offload(ctx, devname)


def show_pause(ctx: Context, devname: str) -> dict[str, bool]:
    """Return the pause parameters of a card: a map of Autonegotiate, RX and TX to True or False.

    CLI Example:

        salt '*' ethtool.show_pause eth0
    """
    rows = (line.partition(":") for line in _lines(ctx, "-a", devname)[1:])
    return {key.strip(): value.strip() == "on" for key, sign, value in rows if sign}


def set_pause(ctx: Context, devname: str, **kwargs: object) -> bool | list[str]:
    """Set the pause parameters of a network card. Return True, or the lines that ethtool prints. Raise CommandError
    if ethtool refuses.

    autoneg, rx, tx
        on or off

    CLI Example:

        salt '*' ethtool.set_pause eth0 autoneg=off rx=off tx=off
    """
    return _lines(ctx, "-A", devname, _given(_PAUSE, kwargs)) or True


def show_features(ctx: Context, devname: str) -> dict[str, dict[str, bool]]:
    """Return the features of a card: a map of feature to ``on`` and ``fixed``, each True or False.

    CLI Example:

        salt '*' ethtool.show_features eth0
    """
    return parse_features("\n".join(_lines(ctx, "-k", devname)))


def set_feature(ctx: Context, devname: str, **kwargs: object) -> bool | str:
    """Set features of a network card. Return True, or the text that ethtool prints. Raise CommandError if ethtool
    refuses.

    rx, tx, sg, tso, ufo, gso, gro, lro, rxvlan, txvlan, ntuple, rxhash
        on or off

    CLI Example:

        salt '*' ethtool.set_feature eth0 sg=off
    """
    return "\n".join(_lines(ctx, "-K", devname, _given(_FEATURES, kwargs))) or True


def parse_ring(text: str) -> dict[str, int]:
    """Return the output of ``ethtool -g`` as a map of ring (rx, tx ...) to its size, and of ring with ``_max`` to
    its greatest size.
    """
    found: dict[str, int] = {}
    end = ""
    for line in lines_of(text):
        key, _, value = line.partition(":")
        if "maximums" in line or "Current" in line:
            end = "_max" if "maximums" in line else ""
        elif key.strip() in _RING:
            found[_RING[key.strip()] + end] = int(value) if value.strip().isdecimal() else 0
    return found


def parse_coalesce(text: str) -> dict[str, int]:
    """Return the output of ``ethtool -c`` as a map of setting (such as rx_usecs) to a number; on is 1, off is 0."""
    found: dict[str, int] = {}
    names = {word: key for key, word in _COALESCE.items()}
    for direction, state in re.findall(r"(RX|TX): (on|off|n/a)", text):
        found[f"adaptive_{direction.lower()}"] = int(state == "on")
    for key, value in re.findall(r"^([a-z-]+):\s+(\d+|n/a)", text, re.MULTILINE):
        found[names.get(key, key.replace("-", "_"))] = int(value) if value.isdecimal() else 0
    return found


def parse_features(text: str) -> dict[str, dict[str, bool]]:
    """Return the output of ``ethtool -k`` as a map of feature to ``{"on": bool, "fixed": bool}``."""
    found = {}
    for line in lines_of(text)[1:]:
        key, sign, value = line.partition(":")
        if sign:
            found[key.strip()] = {"on": value.split()[:1] == ["on"], "fixed": "fixed" in value}
    return found


def _coalesce_words(key: str, value: object) -> tuple[str, str]:
    word = _COALESCE.get(key, key.replace("_", "-"))
    return word, ("on" if value else "off") if key.startswith("adaptive") else str(value)


def _given(known: Sequence[str], given: Mapping[str, object]) -> list[str]:
    """Return the arguments of the program ethtool for those of the settings ``given`` that are in ``known``. Raise
    CommandError if there are none.
    """
    named = {key.lower(): value for key, value in given.items() if key.lower() in known}
    if not named:
        raise CommandError(f"None of the valid parameters were provided: {list(known)}")
    words = {True: "on", False: "off"}
    return [
        word for key, value in named.items() for word in (key, words[value] if isinstance(value, bool) else str(value))
    ]


def _lines(ctx: Context, option: str, devname: str, words: Sequence[str] = ()) -> list[str]:
    found = output_lines(ctx.host, ["ethtool", option, devname, *words])
    if found and found[0].startswith("Cannot"):
        raise CommandError(found[0])
    return found
