"""``git.config_set`` and ``git.config_unset``: keys of a repository's or user's Git configuration."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

#: Function -> arguments that its ``**kwargs`` takes; Python reserves the first word, and ``all`` is a function.
OPTIONS: Mapping[str, frozenset[str]] = {
    "config_set": frozenset({"global"}),
    "config_unset": frozenset({"global", "all"}),
}

_NO_REPO = "Non-global config options require the 'repo' argument to be set"


def config_set(
    ctx: Context,
    name: str,
    value: object = None,
    multivar: object = None,
    repo: str | None = None,
    user: str | None = None,
    password: str | None = None,
    output_encoding: str | None = None,
    **kwargs: object,
) -> Plan:
    """Set a key of the Git configuration: of the repository ``repo``, or with ``global: True`` of the user.

    value, multivar
        the value; or a list of values (or text with commas) for a key with several values
    user
        user that runs git
    """
    if value is not None and multivar is not None:
        return Plan.failed("Only one of 'value' and 'multivar' is permitted")
    everywhere = bool(kwargs.pop("global", False))
    if not everywhere and not repo:
        return Plan.failed(_NO_REPO)
    many = multivar if isinstance(multivar, list) else str(multivar).split(",")
    wanted = [str(value)] if multivar is None else [str(each) for each in many]
    shown: object = f"'{value}'" if multivar is None else wanted
    scope = {"global": everywhere, "user": user}
    before = ctx.call("git.config_get", name, cwd=repo, all=True, **scope)
    key = f"Global key '{name}'" if everywhere else f"'{name}'"
    if before == wanted:
        return Plan.unchanged(f"{key} is already set to {shown}")
    how = "added as" if before is None else "set to"

    def work() -> Outcome:
        failed = f"Failed to set {key[0].lower()}{key[1:]} to {shown}"
        try:
            after = ctx.call("git.config_set", name, value=value, multivar=multivar and wanted, cwd=repo, **scope)
        except CommandError as error:
            return Outcome(f"{failed}: {error}", ok=False)
        changes = {name: {"old": before, "new": after}}
        return Outcome(f"{key} was {how} {shown}", changes) if after == wanted else Outcome(failed, changes, ok=False)

    step = Step(f"set {name} of {repo or 'the user'}", work)
    return Plan.change(f"{key} would be {how} {shown}", [step], {"old": before, "new": wanted})


def config_unset(
    ctx: Context,
    name: str,
    value_regex: str | None = None,
    repo: str | None = None,
    user: str | None = None,
    password: str | None = None,
    output_encoding: str | None = None,
    **kwargs: object,
) -> Plan:
    """Remove the keys of the Git configuration that match the regular expression ``name``.

    value_regex
        remove only values that match this regular expression
    repo, global
        the repository; or ``global: True`` for the user's configuration
    all
        True: also remove keys with several values
    """
    everywhere, several = bool(kwargs.pop("global", False)), bool(kwargs.pop("all", False))
    if not everywhere and not repo:
        return Plan.failed(_NO_REPO)
    pattern = f"^{str(name).lstrip('^').rstrip('$')}$"
    scope = {"global": everywhere, "user": user}
    before = ctx.call("git.config_get_regexp", pattern, value_regex, cwd=repo, **scope)
    if not before:
        return Plan.unchanged("No matching keys are set")
    greedy = [f"{key} ({', '.join(values)})" for key, values in before.items() if len(values) > 1]
    if greedy and not several:
        what = (
            "Multivar(s) matched by the key expression"
            if value_regex is None
            else "Multiple values are matched by value_regex for the following keys"
        )
        return Plan.failed(f"{what} (set 'all' to True to force removal): {'; '.join(greedy)}")

    def work() -> Outcome:
        try:
            for key in before:
                ctx.call("git.config_unset", key, value_regex, cwd=repo, all=several, **scope)
        except CommandError as error:
            return Outcome(f"Failed to unset value(s): {error}", ok=False)
        return Outcome("Value(s) successfully unset", before)

    step = Step(f"unset {name} of {repo or 'the user'}", work)
    return Plan.change(f"{len(before)} key(s) would have value(s) unset", [step], before)
