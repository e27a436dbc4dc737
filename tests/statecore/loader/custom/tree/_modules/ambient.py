"""What a module finds around it"""

import salt.exceptions


def names():
    wanted = (
        "__salt__",
        "__opts__",
        "__grains__",
        "__pillar__",
        "__context__",
        "__utils__",
        "__proxy__",
        "__file_client__",
        "__states__",
        "__low__",
        "__env__",
        "__running__",
        "__executors__",
    )
    return [name for name in wanted if name in globals()]


def options():
    return [
        __opts__["id"],
        __opts__["file_client"],
        __opts__["test"],
        sorted(__opts__["file_roots"]),
        __opts__["grains"]["kernel"],
        __opts__["pillar"].get("color"),
        "cachedir" in __opts__,
    ]


def write_option():
    __opts__["own_key"] = __opts__.get("own_key", 0) + 1
    return __opts__["own_key"]


def foreign_option():
    return __salt__["config.get"]("own_key", "not seen")


def missing():
    found = []
    for ask in (
        lambda: __salt__["no.such"],
        lambda: __salt__.get("no.such"),
        lambda: "no.such" in __salt__,
        lambda: __salt__["test.ping"](),
        lambda: "test.ping" in __salt__,
    ):
        try:
            found.append(ask())
        except KeyError:
            found.append("KeyError")
    return found


def attribute():
    return __salt__.test.echo("x")


def errors(kind):
    raise getattr(salt.exceptions, kind)("it is " + kind)


def caught():
    try:
        __salt__["ambient.errors"]("CommandExecutionError")
    except salt.exceptions.CommandExecutionError as exc:
        return [str(exc), exc.message, exc.strerror, isinstance(exc, salt.exceptions.SaltException)]


def caught_invocation():
    try:
        __salt__["inventory.get"](5)
    except TypeError as exc:
        return type(exc).__name__ in ("SaltInvocationError", "InvocationError") and str(exc)


def encoding():
    return __salt_system_encoding__


def retcode(code):
    __context__["retcode"] = code
    return code


def encoded():
    return [__grains__.get("nothing", "default"), dict(__proxy__ or {})]


def from_tree():
    with __file_client__.value() if hasattr(__file_client__, "value") and __file_client__ else _client() as client:
        path = client.cache_file("salt://data.txt")
        with open(path) as file:
            return file.read()


def _client():
    import salt.fileclient

    return salt.fileclient.get_file_client(__opts__)


def loaders():
    import salt.loader

    utils = salt.loader.utils(__opts__)
    functions = salt.loader.minion_mods(__opts__, utils=utils)
    return [utils["racks.parse"]("x:y"), functions["test.echo"](3)]


def private_function():
    import salt.modules.cmdmod

    return salt.modules.cmdmod._run_quiet("echo quiet")
