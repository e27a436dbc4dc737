"""``salt.wheel`` for users' runners: calls wheel functions of the master."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.compat.master_client import LowClient, call_of_low
from statecore.loader.compat.utils.jid import gen_jid
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import MasterCall


class WheelClient(LowClient):
    """Calls wheel functions of the master on which the user's runner runs."""

    NAME = "salt.wheel.WheelClient"
    NO_MASTER = "salt.wheel.WheelClient works in runners only: a minion must not call wheel functions"

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
        answer = self._called("cmd", MasterCall(fun, tuple(arg or ()), dict(kwarg or {})))
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
        return self._announced("cmd_sync", call_of_low(low))

    def cmd_async(self, low: Mapping[str, Any]) -> dict[str, str]:
        """Call the wheel function that ``low`` describes, fire the event ``salt/wheel/<jid>/ret`` with its result, and
        return {"jid": JID, "tag": "salt/wheel/<jid>"}. The function has ended when this returns.
        """
        done = self._announced("cmd_async", call_of_low(low))
        return {"jid": done["data"]["jid"], "tag": done["tag"]}

    def master_call(self, **kwargs: Any) -> dict[str, Any]:
        """Call the wheel function that the arguments describe as a low chunk, as ``cmd_sync`` does."""
        return self.cmd_sync(kwargs)

    def _called(self, method: str, call: MasterCall) -> dict[str, Any]:
        master = self._master(method)
        if call.arg:
            raise InvocationError(f"{self.NAME}.{method}: pass the arguments by name, in kwarg")
        return master.wheel(call)

    def _announced(self, method: str, call: MasterCall) -> dict[str, Any]:
        """Call a wheel function. Fire the event ``salt/wheel/<jid>/new`` before the call and ``salt/wheel/<jid>/ret``
        after it. Return the map that ``cmd_sync`` returns.
        """
        context = self._context(method)
        jid = gen_jid()
        tag, about = f"salt/wheel/{jid}", {"fun": f"wheel.{call.fun}", "jid": jid, "tag": f"salt/wheel/{jid}"}
        context.events.fire(f"{tag}/new", about)
        data = {**about, **self._called(method, call)}
        context.events.fire(f"{tag}/ret", data)
        return {"tag": tag, "data": data}


Wheel = WheelClient
