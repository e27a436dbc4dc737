"""``salt.wheel`` for users' runners: calls wheel functions of the master."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.clients.calls import CallData, CallReturn, WheelCalls
from statecore.loader.compat.master_client import MasterClient
from statecore.loader.compat.utils.jid import gen_jid
from statecore.model.ports import MasterCall


class WheelClient(MasterClient, WheelCalls):
    """Calls wheel functions of the master on which the user's runner runs."""

    NAME = "salt.wheel.WheelClient"
    NO_MASTER = "salt.wheel.WheelClient works in runners only: a minion must not call wheel functions"

    def _called(self, what: str, call: MasterCall, low: dict[str, object]) -> CallReturn:
        """Call a wheel function. For ``cmd_sync`` and ``cmd_async`` fire the event ``salt/wheel/<jid>/new`` before the
        call and ``salt/wheel/<jid>/ret`` after it.
        """
        context, master = self._context(what), self._master(what)
        if what == "cmd":
            return {"tag": "", "data": _data({}, master.wheel(call))}
        jid = gen_jid()
        tag, about = f"salt/wheel/{jid}", {"fun": f"wheel.{call.fun}", "jid": jid, "tag": f"salt/wheel/{jid}"}
        context.events.fire(f"{tag}/new", about)
        data = _data(about, master.wheel(call))
        context.events.fire(f"{tag}/ret", data)
        return {"tag": tag, "data": data}


def _data(about: Mapping[str, str], done: Mapping[str, object]) -> CallData:
    data: CallData = {"return": done["return"], "success": bool(done["success"])}
    if about:
        data |= {"fun": about["fun"], "jid": about["jid"], "tag": about["tag"]}
    return data


Wheel = WheelClient
