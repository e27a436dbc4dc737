"""The methods of Salt's ``RunnerClient`` and ``WheelClient``: call functions of the master.

``salt.runner`` and ``salt.wheel`` of users' runners, and ``saltern``'s clients of scripts, are subclasses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NotRequired, TypedDict, cast

from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MasterCall

#: Keys of a low chunk that are no arguments of its function: who asks is decided by the operator's key, or by the user
#: that the client signs in.
_RESERVED = frozenset(
    {"fun", "client", "user", "username", "password", "eauth", "token", "key", "full_return", "print_event", "__user__"}
)


class Started(TypedDict):
    """A runner or wheel function that was started: its JID, and the prefix of the tags of its events."""

    jid: str
    tag: str


#: Data of the last event of a runner or wheel function. ``return`` is a word of Python, so this is no class.
CallData = TypedDict(
    "CallData",
    {
        "return": object,
        "success": bool,
        "fun": NotRequired[str],
        "jid": NotRequired[str],
        "tag": NotRequired[str],
        "user": NotRequired[str],
    },
)


class CallReturn(TypedDict):
    """What ``cmd_sync`` returns with ``full_return``: tag and data of the function's last event."""

    tag: str
    data: CallData


class LowClient:
    """A client that calls functions of the master, which low chunks describe: runners or wheel functions."""

    #: Name of the class in messages.
    NAME: ClassVar[str] = "LowClient"

    def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        pub_data: object = None,
        kwarg: Mapping[str, object] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> object:
        """Call a function and return its result; with ``full_return`` {"return": result, "success": bool}.

        ``pub_data`` and ``print_event`` are ignored. Raise CommandError if the master refuses the call, and for a
        function that does not exist InvocationError, in users' runners KeyError.
        """
        done = self._done(MasterCall(fun, tuple(arg or ()), dict(kwarg or {})))
        return {"return": done["return"], "success": done["success"]} if full_return else self._result(done)

    def _done(self, call: MasterCall) -> Mapping[str, object]:
        """Call a function, and return a map with ``return`` and ``success``."""
        raise NotImplementedError

    def _result(self, done: Mapping[str, object]) -> object:
        """Return the result in what ``_done`` returned, or raise CommandError."""
        return done["return"]

    def cmd_async(self, low: Mapping[str, object]) -> Started:
        """Call the function that ``low`` describes and return {"jid": JID, "tag": start of the tags of its events}."""
        raise NotImplementedError

    def asynchronous(self, fun: str, low: Mapping[str, object], *_: object, **__: object) -> Started:
        """Call the function ``fun`` as ``cmd_async`` does. Further arguments are ignored."""
        return self.cmd_async({**low, "fun": fun})

    def low(self, fun: str, low: Mapping[str, object], print_event: bool = True, full_return: bool = False) -> object:
        """Call the function ``fun`` with the arguments of a low chunk, as ``cmd`` does."""
        call = call_of_low({**low, "fun": fun})
        return self.cmd(fun, list(call.arg), kwarg=dict(call.kwarg), full_return=full_return)


class RunnerCalls(LowClient):
    """Starts runner functions as jobs of the master, and waits for their results."""

    NAME: ClassVar[str] = "RunnerClient"

    def _master_for(self, what: str, low: dict[str, object]) -> Master:
        """Return the master for a call of the method ``what``. Keys that say for whom the call acts may be removed from
        ``low``. Raise CommandError if there is none.
        """
        raise NotImplementedError

    def cmd_sync(self, low: Mapping[str, object], timeout: float | None = None, full_return: bool = False) -> object:
        """Call the runner that ``low`` describes ({"fun": ..., "arg": [...], "kwarg": {...}}; other keys are arguments by
        name) as a job of the master, wait for it, and return its result.

        With ``full_return`` return {"tag": tag of the job's last event, "data": map with ``return``, ``success``, ``jid``
        and ``fun``}. In users' runners ``timeout`` is ignored: the runner's own time limits apply.
        """
        chunk = dict(low)
        master = self._master_for("cmd_sync", chunk)
        call = call_of_low(chunk)
        done = self._run(master, call, timeout)
        return runner_return(call.fun, done) if full_return else done["return"]

    def cmd_async(self, low: Mapping[str, object]) -> Started:
        """Start the runner that ``low`` describes, as for ``cmd_sync``, and return {"jid": JID, "tag": start of the tags of
        its events} at once. Raise CommandError if the master refuses it.
        """
        chunk = dict(low)
        master = self._master_for("cmd_async", chunk)
        started = master.start(call_of_low(chunk))
        return {"jid": started["jid"], "tag": started["tag"]}

    def master_call(self, **kwargs: object) -> Started:
        """Start the runner that the arguments describe as a low chunk, as ``cmd_async`` does."""
        return self.cmd_async(kwargs)

    def _run(self, master: Master, call: MasterCall, timeout: float | None) -> Mapping[str, object]:
        """Run a runner and return the data of its last event."""
        return master.run([call])[0]


class WheelCalls(LowClient):
    """Calls wheel functions of the master. Arguments are passed by name: positional ones raise InvocationError."""

    NAME: ClassVar[str] = "WheelClient"

    def _called(self, what: str, call: MasterCall, low: dict[str, object]) -> CallReturn:
        """Call a wheel function for the method ``what``, and return tag and data of its last event. ``low``: keys that
        say for whom the call acts.
        """
        raise NotImplementedError

    def _done(self, call: MasterCall) -> Mapping[str, object]:
        return self._called("cmd", self._named("cmd", call), {})["data"]

    def _result(self, done: Mapping[str, object]) -> object:
        if not done["success"]:
            raise CommandError(str(done["return"]))
        return done["return"]

    def call_func(self, fun: str, **kwargs: object) -> object:
        """Call a wheel function with arguments by name and return its result. Raise as ``cmd`` does."""
        return self.cmd(fun, kwarg=kwargs)

    def cmd_sync(
        self, low: Mapping[str, object], timeout: float | None = None, full_return: bool = False
    ) -> CallReturn:
        """Call the wheel function that ``low`` describes ({"fun": ..., "kwarg": {...}}; other keys are arguments by name).

        Return {"tag": tag, "data": map with ``return``, ``success``, ``jid`` and ``fun``}.
        """
        return self._of_low("cmd_sync", low)

    def cmd_async(self, low: Mapping[str, object]) -> Started:
        """Call the wheel function that ``low`` describes, fire the event ``salt/wheel/<jid>/ret`` with its result, and
        return {"jid": JID, "tag": "salt/wheel/<jid>"}. The function has ended when this returns.
        """
        done = self._of_low("cmd_async", low)
        return {"jid": done["data"].get("jid", ""), "tag": done["tag"]}

    def master_call(self, **kwargs: object) -> CallReturn:
        """Call the wheel function that the arguments describe as a low chunk, as ``cmd_sync`` does."""
        return self.cmd_sync(kwargs)

    def _of_low(self, what: str, low: Mapping[str, object]) -> CallReturn:
        return self._called(what, self._named(what, call_of_low(low)), dict(low))

    def _named(self, what: str, call: MasterCall) -> MasterCall:
        if call.arg:
            raise InvocationError(f"{self.NAME}.{what}: pass the arguments by name, in kwarg")
        return call


def call_of_low(low: Mapping[str, object]) -> MasterCall:
    """Return the MasterCall (function name and arguments) that a low chunk of Salt's clients describes: a map with
    ``fun``, ``arg``, ``kwarg`` and further arguments by name. Raise CommandError if it has no ``fun``.
    """
    if not low.get("fun"):
        raise CommandError("a low chunk needs the key fun")
    arg, kwarg = low.get("arg") or (), low.get("kwarg")
    named = {name: value for name, value in low.items() if name not in _RESERVED and name not in ("arg", "kwarg")}
    fun = str(low["fun"]).removeprefix("runner.").removeprefix("wheel.")
    return MasterCall(
        fun,
        tuple(arg) if isinstance(arg, list | tuple) else (arg,),
        {**named, **(kwarg if isinstance(kwarg, Mapping) else {})},
    )


def runner_return(fun: str, done: Mapping[str, object]) -> CallReturn:
    """Return tag and data of the last event of a runner, from what the master tells of its end."""
    jid, name = str(done.get("jid", "")), str(done.get("fun") or fun)
    data = call_data(done) | {"fun": name if name.startswith("runner.") else f"runner.{name}"}
    return {"tag": f"salt/run/{jid}/ret", "data": data}


def call_return(answer: Mapping[str, object]) -> CallReturn:
    """Return the master's answer to a wheel function (tag and data of its last event) as a CallReturn."""
    data = answer.get("data")
    return {"tag": str(answer.get("tag", "")), "data": call_data(data if isinstance(data, Mapping) else {})}


def call_data(done: Mapping[str, object]) -> CallData:
    """Return the data of a function's last event as CallData; further fields are kept."""
    data: CallData = {"return": done.get("return"), "success": bool(done.get("success", True))}
    return cast("CallData", {**done, **data})
