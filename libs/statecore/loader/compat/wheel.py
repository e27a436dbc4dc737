"""``salt.wheel`` for users' runners: calls wheel functions of the master."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import MasterCall


class WheelClient:
    """Calls wheel functions of the master on which the user's runner runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running master is used."""

    def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        pub_data: object = None,
        kwarg: Mapping[str, object] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> object:
        """Call a wheel function and return its result; with ``full_return`` {"return": result, "success": bool}.

        Arguments are passed by name in ``kwarg``; positional arguments raise InvocationError. Raise CommandError on a
        minion, or if the master refuses the call.
        """
        master = context_of("salt.wheel.WheelClient.cmd").master
        if master is None:
            raise CommandError("salt.wheel.WheelClient works in runners only: a minion must not call wheel functions")
        if arg:
            raise InvocationError("salt.wheel.WheelClient.cmd: pass the arguments by name, in kwarg")
        answer = master.wheel(MasterCall(fun, (), dict(kwarg or {})))
        if full_return:
            return answer
        if not answer["success"]:
            raise CommandError(str(answer["return"]))
        return answer["return"]


Wheel = WheelClient
