"""Salt's ``ansible`` states: modules and playbooks of Ansible on this host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.types import Outcome, Plan, Step

VIRTUAL = "ansible"


def call(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Call modules of Ansible. Each argument is the name of a module; its value is a list of arguments, where a map
    holds keyword arguments.

    Each call is reported as a change, because Ansible does not report whether it changed something. The state fails if
    a module fails; the other modules are called all the same.

    name
        not used
    """
    wanted = {key: _arguments(value) for key, value in kwargs.items() if not key.startswith("__")}
    if not wanted:
        return Plan.failed("no module of Ansible is named")

    def work() -> Outcome:
        changes: dict[str, object] = {}
        good = True
        for module, (args, named) in wanted.items():
            try:
                changes[module] = ctx.call("ansible.call", module, *args, **named)
            except (CommandError, NotAvailable) as error:
                changes[module] = f'Module "{module}" failed. Error message: ({type(error).__name__}) {error}'
                good = False
        return Outcome("", changes, ok=good)

    would = f"Modules of Ansible would be called: {', '.join(wanted)}"
    return Plan.change(would, [Step(f"call {', '.join(wanted)}", work)], {module: {} for module in wanted})


def playbooks(
    ctx: Context,
    name: str,
    rundir: str | None = None,
    git_repo: str | None = None,
    git_kwargs: Mapping[str, object] | None = None,
    ansible_kwargs: Mapping[str, Any] | None = None,
) -> Plan:
    """Run the playbook ``name``. In test mode, Ansible predicts its changes. The state fails if a task fails or a host
    cannot be reached.

    rundir
        directory in which to run, and into which ``git_repo`` is cloned
    git_repo, git_kwargs
        repository with the playbooks, and arguments of ``git.latest`` for it
    ansible_kwargs
        arguments of ``ansible.playbooks``
    """
    given = dict(ansible_kwargs or {})
    if git_repo and not rundir:
        return Plan.failed("git_repo needs rundir: the directory into which the repository is cloned")

    def run(*, check: bool) -> dict[str, Any]:
        more = {"check": True} if check else {}
        answer: dict[str, Any] = ctx.call("ansible.playbooks", name, rundir=rundir, diff=True, **given, **more)
        return answer

    def work() -> Outcome:
        if git_repo:
            clone = ctx.states["git.latest"](name=git_repo, target=rundir, **dict(git_kwargs or {}))
            if clone["result"] is False:
                return Outcome(str(clone["comment"]), clone["changes"], ok=False)
        result, comment, changes = _verdict(name, run(check=False), f"Changes were made by playbook {name}")
        return Outcome(comment, changes, ok=result is not False)

    step = Step(f"run the playbook {name}", work)
    if not ctx.test:
        return Plan.change(f"Running playbook {name}", [step])
    if git_repo and not ctx.host.path(str(rundir)).is_dir():
        return Plan.change(f"{git_repo} would be cloned, and playbook {name} would be run", [step])
    try:
        result, comment, changes = _verdict(name, run(check=True), f"Changes will be made from playbook {name}")
    except (CommandError, NotAvailable) as error:
        return Plan.failed(str(error))
    if result is False:
        return Plan.failed(comment, changes)
    return Plan.change(comment, [step], changes) if result is None else Plan.unchanged(comment)


def _arguments(value: object) -> tuple[list[object], dict[str, Any]]:
    rows = value if isinstance(value, list) else [] if value is None else [value]
    named = {str(key): each for row in rows if isinstance(row, Mapping) for key, each in row.items()}
    return [row for row in rows if not isinstance(row, Mapping)], named


def _verdict(name: str, answer: Mapping[str, Any], changed: str) -> tuple[bool | None, str, dict[str, Any]]:
    """Return (result, comment, changes) for the result ``answer`` of ``ansible.playbooks``.

    The result is True if nothing changed, None if something changed, False if a task failed. ``changed`` is the comment
    for a change.
    """
    if "stats" not in answer:
        return False, str(answer.get("stderr") or answer), {}
    stats = list(answer["stats"].values())
    if any(row["failures"] or row["unreachable"] for row in stats):
        return False, f"There were some issues running the playbook {name}", _changes(answer)
    if not any(row["changed"] for row in stats):
        return True, f"No changes to be made from playbook {name}", {}
    return None, changed, _changes(answer)


def _changes(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return {play: {task: {host: difference}}} of a playbook's tasks that changed something, failed or were
    skipped.
    """
    changes: dict[str, Any] = {}
    for play in answer["plays"]:
        for task in play["tasks"]:
            for host, data in task["hosts"].items():
                if data.get("changed") is True:
                    shown = data.get("diff", data.get("changes", {}))
                elif any(word in data for word in ("failed", "skipped", "unreachable")):
                    shown = data.get("results", data.get("msg", {}))
                else:
                    continue
                tasks = changes.setdefault(play["play"]["name"], {})
                tasks.setdefault(task["task"]["name"], {})[host] = shown
    return changes
