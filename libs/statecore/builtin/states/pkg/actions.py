"""Plans and steps that the ``pkg`` states share: install, remove, hold and unhold packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.builtin.states.pkg import comments, selection
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def install(ctx: Context, want: selection.Want) -> Plan:
    """Return a plan that installs missing packages, and reinstalls present packages with ``reinstall`` or
    ``pkg_verify``.
    """
    there = want.fulfilled(ctx)
    targets = {package: wanted for package, wanted in want.desired.items() if package not in there}
    again = {package: wanted for package, wanted in want.desired.items() if want.reinstall and package in there}
    altered: dict[str, Mapping[str, Mapping[str, object]]] = {}
    if want.verification and not want.reinstall and not want.files:
        try:
            looked_at = {
                package: want.verification.altered(ctx, package) for package in want.desired if package in there
            }
        except CommandError as error:
            return Plan.failed(str(error))
        altered = {package: files for package, files in looked_at.items() if files}
        again = {package: want.desired[package] for package in altered}
    if not targets and not again:
        exact = " and are at the desired version" if any(want.versions.values()) else ""
        return held_plan(ctx, list(want.desired), want.hold, f"All specified packages are already installed{exact}")
    chosen = {**targets, **again}
    done: dict[str, Mapping[str, object]] = {}

    def work() -> Outcome:
        changes = ctx.call(
            "pkg.install",
            refresh=selection.refresh_now(ctx, want.refresh),
            reinstall=bool(again),
            normalize=False,
            ignore_epoch=bool(want.ignore_epoch),
            **{"sources" if want.files else "pkgs": [{package: wanted} for package, wanted in chosen.items()]},
            **want.options,
        )
        done.update(changes)
        still = {package: want.verification.altered(ctx, package) for package in altered} if want.verification else {}
        repaired = comments.Repaired(altered, {package: files for package, files in still.items() if files})
        return comments.installed_outcome(want.versions, targets, again, want.fulfilled(ctx), changes, repaired)

    steps = [Step(f"install {', '.join(chosen)}", lambda: run_guarded(work, "installing package(s)"))]
    if want.hold is not None:
        steps.append(hold_step(ctx, list(want.desired), hold=want.hold, done=done))
    would, predicted = comments.would_install(ctx, targets, again, altered, files=want.files)
    return Plan.change(would, steps, predicted)


def run_guarded(work: Callable[[], Outcome], doing: str) -> Outcome:
    """Call ``work``, the work of a ``pkg`` step, and return its outcome. An error of the package manager becomes a failed
    outcome with the changes made so far.
    """
    try:
        return work()
    except CommandError as error:
        if isinstance(error.info, Mapping) and "changes" in error.info:
            return Outcome(error.strerror_without_changes, error.info["changes"], ok=False)
        return Outcome(f"An error was encountered while {doing}: {error}", ok=False)


def uninstall(ctx: Context, verb: str, wanted: Mapping[str, str | None], targets: list[str]) -> Plan:
    """Return a plan that removes packages. ``verb``: ``remove`` or ``purge``.

    ``targets``: those packages of ``wanted`` that are installed.
    """

    def work() -> Outcome:
        changes = ctx.call(f"pkg.{verb}", pkgs=targets)
        left = {*ctx.call("pkg.list_pkgs"), *(ctx.call("pkg.list_pkgs", removed=True) if verb == "purge" else ())}
        failed = sorted(package for package in targets if package in left)
        if failed:
            return Outcome(f"The following packages failed to {verb}: {', '.join(failed)}.", changes, ok=False)
        others = sorted(package for package in wanted if package not in targets)
        if not others:
            return Outcome(f"All targeted packages were {verb}d.", changes)
        return Outcome(
            f"The following packages were not installed: {', '.join(others)} "
            f"The following packages were {verb}d: {', '.join(targets)}.",
            changes,
        )

    step = Step(f"{verb} {', '.join(targets)}", lambda: run_guarded(work, "removing package(s)"))
    predicted = {package: {"new": f"{verb}d", "old": ""} for package in targets}
    return Plan.change(f"The following packages will be {verb}d: {', '.join(targets)}.", [step], predicted)


def holding(ctx: Context, verb: str, package: str) -> Callable[[], Outcome]:
    """Return a function without arguments that holds or releases one package and returns the Outcome. ``verb``:
    ``hold`` or ``unhold``.
    """

    def work() -> Outcome:
        answer = ctx.call(f"pkg.{verb}", pkgs=[package])[package]
        done = f"Package {package} is now being held" if verb == "hold" else answer["comment"]
        comment = done if answer["result"] else f"Package {package} was not held"
        return Outcome(comment, {package: answer}, ok=bool(answer["result"]))

    return work


def holds(ctx: Context, fewer: Sequence[str], would: list[str], steps: list[Step]) -> Plan:
    """Return a plan with the given steps, and with a further step for each package of ``fewer`` that releases it.

    ``would``: comment lines of the given steps in test mode.
    """
    would = would + [f"The following package would be unheld: {package}" for package in fewer]
    steps = steps + [Step(f"unhold {package}", holding(ctx, "unhold", package)) for package in fewer]
    return Plan.change("\n".join(would), steps) if steps else Plan.unchanged("No changes made")


def hold_step(
    ctx: Context,
    packages: list[str],
    *,
    hold: bool,
    before: str = "",
    done: Mapping[str, Mapping[str, object]] | None = None,
) -> Step:
    """Return the Step of a ``pkg`` state that holds (``hold``) or releases packages.

    ``before``: text to put before the step's comment. ``done``: the changes of the installation before this step,
    which are merged into the step's changes.
    """

    def work() -> Outcome:
        answers = ctx.call("pkg.hold" if hold else "pkg.unhold", pkgs=packages).values()
        changes = {
            answer["name"]: _joined((done or {}).get(answer["name"], {}), answer["changes"])
            for answer in answers
            if answer["changes"]
        }
        comments_of_all = "\n".join(answer["comment"] for answer in answers)
        return Outcome(before + comments_of_all, changes, ok=all(answer["result"] for answer in answers))

    return Step(f"{'hold' if hold else 'unhold'} {', '.join(packages)}", work)


def _joined(first: Mapping[str, object], then: Mapping[str, object]) -> dict[str, str]:
    """Merge two changes of one package, and return {"old", "new"}; old and new values are joined with line ends, as in
    Salt.
    """
    pairs = {key: (str(first.get(key, "")), str(then.get(key, ""))) for key in ("old", "new")}
    return {key: "\n".join(each for each in pair if each) for key, pair in pairs.items()}


def held_plan(ctx: Context, packages: list[str], hold: bool | None, comment: str) -> Plan:
    """Return a plan that installs nothing, but holds (``hold`` True) or releases packages; None changes no holds.
    ``comment`` says that the packages are installed, and begins the plan's comment.
    """
    if hold is None:
        return Plan.unchanged(comment)
    try:
        now = selection.held(ctx)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    rest = [package for package in packages if (package in now) is not hold]
    if not rest:
        status = comments.kept(ctx, hold=hold)
        return Plan.unchanged(".\n".join([comment, *(f"Package {package} is {status}." for package in packages)]))
    would = [f"Package {package} is {comments.to_be_kept(ctx, hold=hold)}." for package in rest]
    step = hold_step(ctx, packages, hold=hold, before=f"{comment}.\n")
    return Plan.change(".\n".join([comment, *would]), [step], notes=())
