"""Salt's ``locale`` states: the system's locale, and the locales that programs can use."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def system(ctx: Context, name: str) -> Plan:
    """Set the system's locale (``LANG``) to ``name``, such as ``en_US.UTF-8``. Nothing happens if it is set; the state
    fails if it cannot be set.
    """
    try:
        if ctx.call("locale.get_locale") == name:
            return Plan.unchanged(f"System locale {name} already set")
    except CommandError as error:
        return Plan.failed(f"Failed to set system locale: {error}")

    def work() -> Outcome:
        try:
            ctx.call("locale.set_locale", name)
        except CommandError as error:
            return Outcome(f"Failed to set system locale: {error}", ok=False)
        return Outcome(f"Set system locale {name}", {"locale": name})

    return Plan.change(f"System locale {name} needs to be set", [Step(f"set the locale {name}", work)])


def present(ctx: Context, name: str) -> Plan:
    """Generate the locale ``name`` if it is missing, so that programs can use it. The state fails if it cannot be
    generated.
    """
    if ctx.call("locale.avail", name):
        return Plan.unchanged(f"Locale {name} is already present")

    def work() -> Outcome:
        if not ctx.call("locale.gen_locale", name):
            return Outcome(f"Failed to generate locale {name}", ok=False)
        return Outcome(f"Generated locale {name}", {"locale": name})

    return Plan.change(f"Locale {name} needs to be generated", [Step(f"generate the locale {name}", work)])
