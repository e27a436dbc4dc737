"""Whether a publication is for this minion: each one decides for itself (protocol section 11.2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from statecore.model.errors import TargetError
from statecore.targeting.match import Subject, matches

_LOG = logging.getLogger("saltern.minion")


def is_for(job: Mapping[str, Any], subject: Subject, nodegroups: Mapping[str, Any]) -> bool:
    """Whether the job's target means this minion. One that is not understood does not, and is reported."""
    try:
        return matches(
            job["tgt"],
            str(job.get("tgt_type") or "glob"),
            subject,
            delimiter=str(job.get("delimiter") or ":"),
            nodegroups=nodegroups,
        )
    except TargetError as error:
        _LOG.warning("the target of a job is not understood: %s", error, extra={"jid": job["jid"]})
        return False
