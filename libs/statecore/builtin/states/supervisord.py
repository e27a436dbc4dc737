"""Salt's ``supervisord`` states (until Salt 3007): programs of supervisord.

A name is a program, ``group:program``, or ``group:`` (also ``group:*``) for all programs of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.model.types import Outcome, Plan, Step

#: supervisord's states in which a program neither runs nor starts.
_STOPPED = ("STOPPED", "STOPPING", "EXITED", "FATAL")

#: Errors of supervisorctl that mean that nothing was to do.
_HARMLESS = ("already started", "already active", "not running", "already added")


@dataclass(frozen=True, slots=True)
class _Supervisor:
    """Access to one supervisord of the host, and the name of a program or group of programs."""

    ctx: Context
    name: str
    where: Mapping[str, str | None]

    def matches(self) -> dict[str, str]:
        """Map of supervisord's programs that the name selects to their status.

        Raises CommandError if supervisord does not answer.
        """
        found = self.ctx.call("supervisord.status", **self.where)
        group = self.name.endswith(":")
        return {
            program: entry["state"]
            for program, entry in found.items()
            if program == self.name or (group and program.startswith(self.name))
        }

    def do(self, verb: str, comment: str) -> Outcome:
        """Run a supervisorctl command (``verb``) for the program, and return the outcome. ``comment``: comment on success."""
        return _outcome_of(self.ctx.call(f"supervisord.{verb}", self.name, **self.where), comment)


def running(
    ctx: Context,
    name: str,
    restart: bool = False,
    update: bool = False,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
) -> Plan:
    """Start a program of supervisord, or all programs of a group. Programs that supervisord does not know yet are
    added.

    restart
        True: restart programs that already run
    update
        True: make supervisord apply changes of its configuration first
    user
        user that runs supervisorctl
    conf_file
        configuration file of supervisord
    bin_env
        path of supervisorctl, or of a virtual environment that contains it
    """
    supervisor = _Supervisor(
        ctx, name.removesuffix("*") if name.endswith(":*") else name, _where(user, conf_file, bin_env)
    )
    try:
        known = supervisor.matches()
    except CommandError as error:
        return Plan.failed(str(error))
    down = [program for program, state in known.items() if state != "RUNNING"]
    if known and not down and not restart and not update:
        return Plan.unchanged(_running_already(supervisor.name))
    steps = [Step(f"start {supervisor.name}", lambda: _run(supervisor, restart=restart, update=update))]
    return Plan.change(_would(supervisor.name, known, down, restart=restart, update=update), steps)


def dead(
    ctx: Context, name: str, user: str | None = None, conf_file: str | None = None, bin_env: str | None = None
) -> Plan:
    """Stop a program of supervisord, or all programs of a group. Nothing happens if it does not exist or is stopped."""
    supervisor = _Supervisor(
        ctx, name.removesuffix("*") if name.endswith(":*") else name, _where(user, conf_file, bin_env)
    )
    try:
        known = supervisor.matches()
    except CommandError as error:
        return Plan.failed(str(error))
    if not known:
        return Plan.unchanged(f"Service {name} doesn't exist")
    if all(state in _STOPPED for state in known.values()):
        return Plan.unchanged(f"Service {name} is not running")

    def work() -> Outcome:
        comment = f"Stopping service: {name}"
        outcome = supervisor.do("stop", comment)
        return Outcome(outcome.comment, {name: comment} if outcome.ok else {}, ok=outcome.ok)

    return Plan.change(f"Service {name} is set to be stopped", [Step(f"stop {name}", work)])


def mod_watch(
    ctx: Context,
    name: str,
    restart: bool = True,
    update: bool = False,
    user: str | None = None,
    conf_file: str | None = None,
    bin_env: str | None = None,
    sfun: str = "running",
) -> Plan:
    """Restart a program of ``supervisord.running``, because a watched state changed. A program of ``supervisord.dead``
    is stopped.
    """
    if sfun == "dead":
        return dead(ctx, name, user, conf_file, bin_env)
    return running(ctx, name, restart, update, user, conf_file, bin_env)


# ------------------------------------------------------------------------------------------------------------------------ parts


def _run(supervisor: _Supervisor, *, restart: bool, update: bool) -> Outcome:
    ctx, name = supervisor.ctx, supervisor.name
    known = supervisor.matches()
    done: list[str] = []
    updated = False
    if update:
        output = ctx.call("supervisord.update", **supervisor.where)
        outcome = _outcome_of(output, "Updating supervisor")
        if not outcome.ok:
            return outcome
        done += [outcome.comment] if output.strip() else []
        updated = any(line.startswith(f"{_group(name)}: ") for line in lines_of(output))
    elif not known:
        ctx.call("supervisord.reread", **supervisor.where)
        outcome = supervisor.do("add", f"Adding service: {name}")
        if not outcome.ok:
            return outcome
        done.append(outcome.comment)
    kind = "" if name not in known and not name.endswith(":") else " group" if name.endswith(":") else " service"
    kind = kind if known else ""
    if known and not any(state in _STOPPED for state in known.values()):
        if restart and not updated:
            outcome = supervisor.do("restart", f"Restarting{kind}: {name}")
            done.append(outcome.comment)
        else:
            what = "updated" if updated else "already running"
            outcome = Outcome(f"Not starting {what}{kind}: {name}")
    elif updated and _runs(supervisor):
        outcome = Outcome(f"Not starting updated{kind}: {name}")
    else:
        outcome = supervisor.do("start", f"Starting{kind}: {name}")
        done.append(outcome.comment)
    if not outcome.ok:
        return outcome
    if not _runs(supervisor):
        return Outcome(f"{outcome.comment}\n{name} was started and does not run", ok=False)
    return Outcome(outcome.comment, {name: " ".join(done)} if done else {})


def _runs(supervisor: _Supervisor) -> bool:
    states = supervisor.matches().values()
    return bool(states) and all(state in ("RUNNING", "STARTING") for state in states)


def _outcome_of(output: str, comment: str) -> Outcome:
    """Return the outcome of supervisorctl's output: failed if a line contains ERROR, except for harmless errors."""
    bad = [line for line in lines_of(output) if "ERROR" in line and not any(each in line for each in _HARMLESS)]
    return Outcome("\n".join([comment, output]) if bad else comment, ok=not bad)


def _would(name: str, known: Mapping[str, str], down: list[str], *, restart: bool, update: bool) -> str:
    group = name.endswith(":")
    if not known:
        return f"{'Group ' + repr(name) if group else f'Service {name}'} will be added and started"
    if not down:
        what = "supervisor is set to be updated" if update else "it is set to be restarted"
        return f"{_running_already(name)}; {what}" if update or restart else _running_already(name)
    if not group:
        return f"Service {name} will be started"
    if len(down) == len(known):
        return f"All services in group '{name}' will be started"
    return f"The following services will be started: {' '.join(down)}"


def _running_already(name: str) -> str:
    if name.endswith(":"):
        return f"All services in group '{name}' are already running"
    return f"Service {name} is already running"


def _group(name: str) -> str:
    return name.partition(":")[0]


def _where(user: str | None, conf_file: str | None, bin_env: str | None) -> dict[str, str | None]:
    return {"user": user, "conf_file": conf_file, "bin_env": bin_env}
