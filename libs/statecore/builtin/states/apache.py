"""Salt's ``apache`` states: configuration files of Apache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.types import FileChange, Outcome, Plan, Step


def configfile(ctx: Context, name: str, config: Sequence[Mapping[str, object]]) -> Plan:
    """Write the configuration file ``name`` of Apache from data, if its content differs. The state fails if the file
    cannot be read or written.

    config
        list of maps of directive to value. A map with the key ``this`` is a section: ``this`` is its argument, the other
        keys its directives. A list repeats the directive.
    """
    try:
        text = ctx.call("apache.config", name, config, edit=False)
        place = ctx.host.path(name)
        now = place.read_bytes() if place.exists() else None
    except (CommandError, OSError) as error:
        return Plan.failed(str(error))
    old = (now or b"").decode("utf-8", "replace")
    if text.strip() == old.strip():
        return Plan.unchanged("Configuration is up to date.")
    changes = {"old": old, "new": text}
    content = f"{text}\n".encode()

    def work() -> Outcome:
        try:
            managed_file.replace(ctx.host, place, content, Attributes())
        except (OSError, HostError) as error:
            return Outcome(f"Failed to create apache configuration. {error}", ok=False)
        return Outcome("Successfully created configuration.", changes)

    return Plan.change(
        "Configuration will update.", [Step(f"write {name}", work, FileChange(name, now, content))], changes
    )
