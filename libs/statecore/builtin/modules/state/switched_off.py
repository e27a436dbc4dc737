"""What runs are forbidden: the grain ``state_runs_disabled``, and what it says of the SLS files of a run."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context

GRAIN = "state_runs_disabled"


def disabled(ctx: Context) -> list[str]:
    """What is forbidden."""
    listed = ctx.call("grains.get", GRAIN)
    return [str(each) for each in listed] if isinstance(listed, list) else []


def refusals(ctx: Context, names: Sequence[str]) -> list[str]:
    """A sentence for each of these SLS files that is forbidden."""
    return [sentence for name in names for pattern in disabled(ctx) if (sentence := _refusal(name, pattern))]


def _refusal(name: str, pattern: str) -> str:
    if ".*" in pattern:
        if name.startswith(f"{pattern.split('.')[0]}."):
            return (
                f'The state file "{name}" is currently disabled by "{pattern}", '
                f"to re-enable, run state.enable {pattern}."
            )
    elif name == pattern:
        return f'The state file "{name}" is currently disabled, to re-enable, run state.enable {name}.'
    return ""
