"""``salt.state`` for users' modules: the names of keywords in state data. States are run through ``__salt__``."""

from __future__ import annotations

from typing import NoReturn

from statecore.loader.compat.utils.state import gen_tag
from statecore.model.errors import CommandError

STATE_REQUISITE_KEYWORDS = frozenset(
    (
        *("listen", "onchanges", "onchanges_any", "onfail", "onfail_all", "onfail_any", "onfail_stop", "prereq"),
        *("prerequired", "require", "require_any", "watch", "watch_any"),
    )
)

STATE_REQUISITE_IN_KEYWORDS = frozenset(
    ("listen_in", "onchanges_in", "onfail_in", "prereq_in", "require_in", "watch_in")
)

STATE_RUNTIME_KEYWORDS = frozenset(
    (
        *("check_cmd", "cmd_opts_exclude", "creates", "failhard", "fire_event", "fun", "no_log", "onlyif", "order"),
        *("parallel", "prereq", "prereq_in", "reload_grains", "reload_modules", "reload_pillar", "retry", "runas"),
        *("runas_password", "saltenv", "state", "umask", "unless", "use", "use_in", "__env__", "__id__", "__prereq__"),
        *("__orchestration_jid__", "__prerequiring__", "__sls__", "__sls_included_from__", "__umask__", "__pub_arg"),
        *("__pub_fun", "__pub_jid", "__pub_minion_is_target", "__pub_pid", "__pub_pure_resource_target"),
        *("__pub_resource_job", "__pub_resource_target", "__pub_resource_targets", "__pub_ret", "__pub_tgt"),
        *("__pub_tgt_type", "__pub_user"),
    )
)

STATE_INTERNAL_KEYWORDS = STATE_REQUISITE_KEYWORDS | STATE_REQUISITE_IN_KEYWORDS | STATE_RUNTIME_KEYWORDS


def _gen_tag(low: dict[str, object]) -> str:
    return gen_tag(low)


class State:
    """Salt's state engine, which modules cannot start here: the constructor raises CommandError."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        _refuse(type(self).__name__)


class HighState(State):
    """Salt's highstate, which modules cannot start here: the constructor raises CommandError."""


def _refuse(name: str) -> NoReturn:
    raise CommandError(
        f"salt.state.{name} does not exist: run states with __salt__['state.apply'], or show their low data with "
        "__salt__['state.show_low_sls']"
    )
