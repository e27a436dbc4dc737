"""Returner ``local_cache``: stores returns in files below the minion's cache directory, laid out like Salt's local job
cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from statecore.host.content import data_files, private_files
from statecore.model.context import Context
from statecore.model.substitution import segment

_KEPT = ("return", "retcode", "success")


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Write a job's return to ``jobs/<2 digits>/<digest of the JID>/<minion>/return.p``, and the name of its outputter,
    if it has one, to ``out.p``. An existing return of the same job is kept.
    """
    jid = str(ret["jid"])
    digest = hashlib.new(str(ctx.opts.get("hash_type") or "sha256"), jid.encode()).hexdigest()
    job = Path(str(ctx.opts["cachedir"])) / "jobs" / digest[:2] / digest[2:]
    place = job / segment(ret["id"], "the minion's id")
    if (place / "return.p").exists():
        # As in Salt, a second return of the same job is ignored.
        return
    data_files.store(place / "return.p", {name: ret[name] for name in _KEPT if name in ret})
    if "out" in ret:
        data_files.store(place / "out.p", ret["out"])
    private_files.write(job / "jid", jid)
