"""Salt's ``tls`` states: how long a certificate is valid."""

from __future__ import annotations

import datetime
import time

from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.types import Plan


def valid_certificate(
    ctx: Context, name: str, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> Plan:
    """Fail unless the certificate ``name`` is valid now, and for the given time from now on.

    name
        path of the certificate
    weeks, days, hours, minutes, seconds
        the time, which is their sum
    """
    try:
        info = ctx.call("tls.cert_info", name)
    except (CommandError, NotAvailable) as error:
        return Plan.failed(str(error))
    now = time.time()
    if now < info["not_before"]:
        return Plan.failed("Certificate is not yet valid")
    if now > info["not_after"]:
        return Plan.failed("Certificate is expired")
    left = datetime.timedelta(seconds=info["not_after"] - now)
    wanted = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    if left < wanted:
        return Plan.failed(f"Certificate will expire in {left}, which is less than {wanted}")
    return Plan.unchanged(f"Certificate is valid for {left}")
