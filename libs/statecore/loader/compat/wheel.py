"""``salt.wheel`` for users' runners: calls wheel functions of the master."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.compat.runner import call_of_low
from statecore.loader.compat.utils.jid import gen_jid
from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import MasterCall


class WheelClient:
    """Calls wheel functions of the master on which the user's runner runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running master is used."""

    def __enter__(self) -> WheelClient:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the client holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

    @property
    def opts(self) -> dict[str, object]:
        """Options of the master, a map."""
        return ModuleOpts(context_of("salt.wheel.WheelClient.opts"))

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
        answer = _called("cmd", MasterCall(fun, tuple(arg or ()), dict(kwarg or {})))
        if full_return:
            return answer
        if not answer["success"]:
            raise CommandError(str(answer["return"]))
        return answer["return"]

    def call_func(self, fun: str, **kwargs: object) -> object:
        """Call a wheel function with arguments by name and return its result. Raise as ``cmd`` does."""
        return self.cmd(fun, kwarg=kwargs)

    def cmd_sync(
        self, low: Mapping[str, Any], timeout: float | None = None, full_return: bool = False
    ) -> dict[str, Any]:
        """Call the wheel function that ``low`` describes ({"fun": ..., "kwarg": {...}}; other keys are arguments by name).

        Return {"tag": tag, "data": map with ``return``, ``success``, ``jid`` and ``fun``}. Raise CommandError on a minion.
        """
        return _announced("cmd_sync", call_of_low(low))

    def cmd_async(self, low: Mapping[str, Any]) -> dict[str, str]:
        """Call the wheel function that ``low`` describes, fire the event ``salt/wheel/<jid>/ret`` with its result, and
        return {"jid": JID, "tag": "salt/wheel/<jid>"}. The function has ended when this returns.
        """
        done = _announced("cmd_async", call_of_low(low))
        return {"jid": done["data"]["jid"], "tag": done["tag"]}

    def asynchronous(self, fun: str, low: Mapping[str, Any], *_: object, **__: object) -> dict[str, str]:
        """Call the wheel function ``fun`` as ``cmd_async`` does. Further arguments are ignored."""
        return self.cmd_async({**low, "fun": fun})

    def low(self, fun: str, low: Mapping[str, Any], print_event: bool = True, full_return: bool = False) -> object:
        """Call the wheel function ``fun`` with the arguments of a low chunk, as ``cmd`` does."""
        call = call_of_low({**low, "fun": fun})
        return self.cmd(fun, list(call.arg), kwarg=call.kwarg, full_return=full_return)

    def master_call(self, **kwargs: Any) -> dict[str, Any]:
        """Call the wheel function that the arguments describe as a low chunk, as ``cmd_sync`` does."""
        return self.cmd_sync(kwargs)


def _called(what: str, call: MasterCall) -> dict[str, Any]:
    master = _context(what).master
    assert master is not None
    if call.arg:
        raise InvocationError(f"salt.wheel.WheelClient.{what}: pass the arguments by name, in kwarg")
    return master.wheel(call)


def _announced(what: str, call: MasterCall) -> dict[str, Any]:
    """Call a wheel function. Fire the event ``salt/wheel/<jid>/new`` before the call and ``salt/wheel/<jid>/ret``
    after it. Return the map that ``WheelClient.cmd_sync`` returns.
    """
    context = _context(what)
    jid = gen_jid()
    tag, about = f"salt/wheel/{jid}", {"fun": f"wheel.{call.fun}", "jid": jid, "tag": f"salt/wheel/{jid}"}
    context.events.fire(f"{tag}/new", about)
    data = {**about, **_called(what, call)}
    context.events.fire(f"{tag}/ret", data)
    return {"tag": tag, "data": data}


def _context(what: str) -> Context:
    context = context_of(f"salt.wheel.WheelClient.{what}")
    if context.master is None:
        raise CommandError("salt.wheel.WheelClient works in runners only: a minion must not call wheel functions")
    return context


Wheel = WheelClient
