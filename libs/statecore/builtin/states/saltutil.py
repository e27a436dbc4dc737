"""Salt's ``saltutil`` states: fetch users' modules from the state tree.

New modules are available to later states only with ``reload_modules: True``. Arguments of each state: ``saltenv``,
``refresh``,
``extmod_whitelist`` and ``extmod_blacklist``, as in the execution function of the same name.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.model.types import Outcome, Plan, Step

_ARGUMENTS = ("saltenv", "refresh", "extmod_whitelist", "extmod_blacklist")

_NOTHING = "No updates to sync"


def sync_all(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules of all kinds from the state tree to the minion."""
    return _plan(ctx, "all", {**kwargs}, ("clean_pillar_cache", *_ARGUMENTS))


def sync_beacons(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_beacons`` of the state tree to the minion."""
    return _plan(ctx, "beacons", kwargs, _ARGUMENTS)


def sync_clouds(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_clouds`` of the state tree to the minion."""
    return _plan(ctx, "clouds", kwargs, _ARGUMENTS)


def sync_engines(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_engines`` of the state tree to the minion."""
    return _plan(ctx, "engines", kwargs, _ARGUMENTS)


def sync_grains(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_grains`` of the state tree to the minion."""
    return _plan(ctx, "grains", kwargs, _ARGUMENTS)


def sync_executors(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_executors`` of the state tree to the minion."""
    return _plan(ctx, "executors", kwargs, _ARGUMENTS)


def sync_log_handlers(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_log_handlers`` of the state tree to the minion."""
    return _plan(ctx, "log_handlers", kwargs, _ARGUMENTS)


def sync_modules(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_modules`` of the state tree to the minion."""
    return _plan(ctx, "modules", kwargs, _ARGUMENTS)


def sync_output(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_output`` of the state tree to the minion."""
    return _plan(ctx, "output", kwargs, _ARGUMENTS)


def sync_outputters(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_output`` of the state tree to the minion."""
    return _plan(ctx, "outputters", kwargs, _ARGUMENTS)


def sync_pillar(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_pillar`` of the state tree to the minion."""
    return _plan(ctx, "pillar", kwargs, _ARGUMENTS)


def sync_proxymodules(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_proxymodules`` of the state tree to the minion."""
    return _plan(ctx, "proxymodules", kwargs, _ARGUMENTS)


def sync_matchers(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_matchers`` of the state tree to the minion."""
    return _plan(ctx, "matchers", kwargs, _ARGUMENTS)


def sync_renderers(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_renderers`` of the state tree to the minion."""
    return _plan(ctx, "renderers", kwargs, _ARGUMENTS)


def sync_returners(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_returners`` of the state tree to the minion."""
    return _plan(ctx, "returners", kwargs, _ARGUMENTS)


def sync_sdb(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_sdb`` of the state tree to the minion."""
    return _plan(ctx, "sdb", kwargs, _ARGUMENTS)


def sync_states(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_states`` of the state tree to the minion."""
    return _plan(ctx, "states", kwargs, _ARGUMENTS)


def sync_tops(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_tops`` of the state tree to the minion."""
    return _plan(ctx, "tops", kwargs, _ARGUMENTS)


def sync_resources(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_resources`` of the state tree to the minion."""
    return _plan(ctx, "resources", kwargs, _ARGUMENTS)


def sync_thorium(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_thorium`` of the state tree to the minion."""
    return _plan(ctx, "thorium", kwargs, _ARGUMENTS)


def sync_utils(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_utils`` of the state tree to the minion."""
    return _plan(ctx, "utils", kwargs, _ARGUMENTS)


def sync_serializers(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_serializers`` of the state tree to the minion."""
    return _plan(ctx, "serializers", kwargs, _ARGUMENTS)


def sync_wrapper(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Copy users' modules from ``salt://_wrapper`` of the state tree to the minion."""
    return _plan(ctx, "wrapper", kwargs, _ARGUMENTS)


def _plan(ctx: Context, kind: str, given: dict[str, object], known: tuple[str, ...]) -> Plan:
    if unknown := sorted(set(given) - set(known)):
        return Plan.failed(f"saltutil.sync_{kind} takes no argument {', '.join(unknown)}; it takes {', '.join(known)}")

    def work() -> Outcome:
        try:
            synced = ctx.call(f"saltutil.sync_{kind}", **given)
        except StatecoreError as error:
            return Outcome(f"Failed to run sync_{kind}: {error}", ok=False)
        if kind == "all":
            changes = {each: names for each, names in synced.items() if names}
            return Outcome("Sync performed" if changes else _NOTHING, changes)
        return Outcome(f"Updated {kind}.", {kind: synced}) if synced else Outcome(_NOTHING)

    step = Step(f"fetch {kind} of the tree", work)
    return Plan.change(f"saltutil.sync_{kind} would have been run", [step])
