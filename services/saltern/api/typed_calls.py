"""The calls below ``/v1``, which Salt's API does not have: the session, lists of minions, jobs as tables, the master's parts.

They only read, record no job, and answer from the master's store. Each value is below ``return``, as of Salt's calls.

Source: docs/api.md#typed-calls
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saltern.api.answers import Refused
from saltern.api.server import Api, Handler, shown
from statecore.model.redaction import shown_arguments

#: Most ids of minions in one question.
_MOST_IDS = 100

#: Filters of a list of jobs, as of the runner ``jobs.list_jobs``.
_FILTERS = ("after", "before", "limit", "cursor", "function", "minion", "user", "target", "success", "state")


async def session(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/session`` with the user of the session: name, the time of its end, and what this server has."""
    _, user = await api.signed_in(request)
    found = {"user": user.name, "expire": user.expire, "has_rights": user.has_rights, "clients": api.clients.names}
    return shown(request, {"return": found})


async def fleet(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/fleet?tgt=...&tgt_type=...`` with the accepted minions that a target matches, with their presence
    and some grains; with ``ids=true`` with their ids only.
    """
    token, _ = await api.signed_in(request)
    query = _query(request, ("tgt", "tgt_type", "ids"))
    wanted: dict[str, Any] = {
        "tgt": query.get("tgt", "*"),
        "tgt_type": query.get("tgt_type", "glob"),
        "ids": query.get("ids") == "true",
    }
    return shown(request, {"return": await api.link.call("fleet", token=token, **wanted)})


async def topology(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/topology`` with the parts of the master, and with figures of this API server."""
    token, _ = await api.signed_in(request)
    found = await api.link.call("topology", token=token)
    own = {"started": api.started, "requests": api.requests, "listeners": api.feed.listeners, "now": time.time()}
    return shown(request, {"return": {**found, "api": own}})


async def jobs(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/jobs`` with one page of the jobs that filters match, newest first: {jobs: [{jid, load, meta}],
    cursor}.
    """
    token, _ = await api.signed_in(request)
    query: dict[str, object] = {**_query(request, _FILTERS)}
    if query.get("success") in ("true", "false"):
        query["success"] = query["success"] == "true"
    found = await api.link.call("find_jobs", token=token, filters=query)
    page = [{**each, "load": _masked(each["load"])} for each in found["jobs"]]
    return shown(request, {"return": {"jobs": page, "cursor": found["cursor"]}})


def _masked(load: Mapping[str, object]) -> dict[str, object]:
    """Return the load of a job with secrets in its arguments masked."""
    return {**load, "arg": shown_arguments(load.get("fun"), load.get("arg"))}


async def job(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/jobs/<jid>`` with how a job was called, and its state on each minion."""
    token, _ = await api.signed_in(request)
    jid = request.path_params["jid"]
    call = await api.link.call("job_call", token=token, jid=jid)
    status = await api.link.call("job_status", token=token, jid=jid)
    return shown(request, {"return": {**status, **call}})


async def matrix(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/jobs/<jid>/matrix`` with a job as a table of minions and states: one page of at most 100 minions
    after the id ``cursor``, or those whose ids are in ``minions``, separated by commas.
    """
    token, _ = await api.signed_in(request)
    query = _query(request, ("minions", "cursor"))
    more: dict[str, Any] = {"cursor": query.get("cursor")}
    if "minions" in query:
        more = {"minions": [name for name in query["minions"].split(",") if name]}
        if len(query["minions"].split(",")) > _MOST_IDS:
            raise Refused(400, f"minions: at most {_MOST_IDS} ids")
    return shown(
        request, {"return": await api.link.call("job_matrix", token=token, jid=request.path_params["jid"], **more)}
    )


async def job_return(api: Api, request: Request) -> Response:
    """Answer ``GET /v1/jobs/<jid>/returns/<minion>`` with the return of one minion as the job cache has it."""
    token, _ = await api.signed_in(request)
    jid, minion = request.path_params["jid"], request.path_params["mid"]
    found = await api.link.call("job_returns", token=token, jid=jid, minions=[minion])
    if minion not in found:
        raise Refused(404, f"{minion} has not returned for the job {jid}")
    return shown(request, {"return": found[minion]})


def _query(request: Request, names: tuple[str, ...]) -> dict[str, str]:
    """Return the query of a request as {name: text}. Raises Refused for a name that the call does not have."""
    unknown = sorted(set(request.query_params) - set(names))
    if unknown:
        raise Refused(400, f"there is no parameter '{unknown[0]}'; there are {', '.join(names)}")
    return {name: value for name, value in request.query_params.items() if value != ""}


#: Path and handler of each call; all are ``GET``.
ROUTES: tuple[tuple[str, Handler], ...] = (
    ("/v1/session", session),
    ("/v1/fleet", fleet),
    ("/v1/topology", topology),
    ("/v1/jobs", jobs),
    ("/v1/jobs/{jid}", job),
    ("/v1/jobs/{jid}/matrix", matrix),
    ("/v1/jobs/{jid}/returns/{mid}", job_return),
)
