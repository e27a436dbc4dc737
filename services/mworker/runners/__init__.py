"""Runners: what `salt-run` and reactions run on the master. One table; a runner's first parameter is its tools."""

from __future__ import annotations

from collections.abc import Mapping

from services.mworker.runners import jobs, manage, saltutil, state
from services.mworker.runners.runner import Runner

RUNNERS: Mapping[str, Runner] = {
    "jobs.active": jobs.active,
    "jobs.list_job": jobs.list_job,
    "jobs.list_jobs": jobs.list_jobs,
    "jobs.lookup_jid": jobs.lookup_jid,
    "jobs.print_job": jobs.print_job,
    "jobs.last_run": jobs.last_run,
    "jobs.exit_success": jobs.exit_success,
    "manage.up": manage.up,
    "manage.down": manage.down,
    "manage.status": manage.status,
    "manage.present": manage.present,
    "state.orchestrate": state.orchestrate,
    "state.orch": state.orchestrate,
    "state.sls": state.orchestrate,
    "state.orchestrate_high": state.orchestrate_high,
    "state.orchestrate_show_sls": state.orchestrate_show_sls,
    "state.orch_show_sls": state.orchestrate_show_sls,
    "state.orchestrate_single": state.orchestrate_single,
    **saltutil.SYNCS,
    "test.arg": lambda tools, *args, **kwargs: {"args": list(args), "kwargs": kwargs},
}
