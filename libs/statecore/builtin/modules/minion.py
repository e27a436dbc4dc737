"""The minion's own process: Salt's ``minion`` execution module."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError

ALIASES = {"list": "list_"}

_DIRECTORIES = ("minions", "minions_pre", "minions_rejected", "minions_denied")


def list_(ctx: Context) -> dict[str, list[str]]:
    """Return the minion ids whose keys a stock master on this host has: a map of its directories (minions,
    minions_pre, minions_rejected, minions_denied) to ids. On a host without a master, the lists are empty.

    CLI Example:

        salt '*' minion.list
    """
    place = str(ctx.opts.get("pki_dir") or "/etc/salt/pki/minion").replace("minion", "master")
    found: dict[str, list[str]] = {}
    for name in _DIRECTORIES:
        directory = ctx.host.path(f"{place}/{name}")
        files = [each.name for each in directory.iterdir() if each.is_file()] if directory.is_dir() else []
        found[name] = sorted((each for each in files if not each.startswith(".")), key=str.lower)
    return found


def restart(
    ctx: Context,
    systemd: bool = True,
    win_service: bool = True,
    schedule_retry: bool = False,
    retry_delay: int = 180,
) -> dict[str, object]:
    """Restart the minion's service by systemd. Return a map with ``service_restart``, ``comment`` (a list) and
    ``retcode`` (0, or 70 if this failed). Raise CommandError on a host without systemd.

    systemd
        False: raise CommandError; what started the minion has to restart it
    schedule_retry
        True: let systemd start the service after ``retry_delay`` seconds, should it not run then
    win_service
        accepted, without effect

    CLI Example:

        salt '*' minion.restart
    """
    if not systemd or ctx.grains.get("init") != "systemd":
        raise CommandError(
            "the minion is restarted by what started it: only a service of systemd can be restarted from within"
        )
    answer: dict[str, object] = {}
    comment = ["Using systemctl to restart salt-minion"]
    if schedule_retry:
        words = ["systemd-run", f"--on-active={int(retry_delay)}", "/bin/sh", "-c"]
        retry = ctx.call(
            "cmd.run_all",
            [*words, "systemctl is-active salt-minion || systemctl start salt-minion"],
            python_shell=False,
        )
        if retry["retcode"]:
            reason = str(retry["stderr"])
            comment.append("Adding scheduled retry failed")
            return _ended({"result": False, "stderr": reason, "schedule_retry": {}}, comment, 70)
        answer["schedule_retry"] = {"detail": retry["stderr"], "delay": retry_delay}
        comment.append(f"Scheduled retry for minion restart in {retry_delay} seconds")
    try:
        answer["result"] = ctx.call("service.restart", "salt-minion", no_block=True)
    except CommandError as error:
        return _ended(answer | {"result": False, "stderr": str(error)}, [*comment, "Service restart failed"], 70)
    return _ended(answer, [*comment, "Service restart successful"], 0)


def _ended(service: dict[str, object], comment: list[str], retcode: int) -> dict[str, object]:
    return {"killed": None, "restart": {}, "service_restart": service, "comment": comment, "retcode": retcode}
