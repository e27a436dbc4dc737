"""The options ``redis_sentinels``, ``redis_user`` ... as the URL that the store takes (``masterstore.address``)."""

from __future__ import annotations

from pathlib import Path

from saltern.kit.config.master_options import MasterOptions
from saltern.kit.config.reading import ConfigError, redis_place

#: File with a user's own URL of Redis, in the directory of a role's keys or of the operator's login.
OWN_URL = "redis.url"

#: Directory of the operator's login, beside the directories of the roles' keys.
OPERATOR_LOGIN = "redis-operator"

_IN_FILE = "file://"

#: Options that mean something only beside ``redis_sentinels``.
_BESIDE = (
    *("redis_sentinel_master", "redis_sentinel_user", "redis_sentinel_password", "redis_user", "redis_password"),
    *("redis_db", "redis_tls", "redis_tls_ca", "redis_tls_cert", "redis_tls_key"),
)

#: Option -> parameter of the URL.
_PARAMETERS = {
    "redis_sentinel_user": "sentinel_username",
    "redis_sentinel_password": "sentinel_password",
    "redis_tls_ca": "ssl_ca_certs",
    "redis_tls_cert": "ssl_certfile",
    "redis_tls_key": "ssl_keyfile",
}


def sentinel_url(options: MasterOptions) -> str:
    """Return the URL ``redis+sentinel://...`` that the options describe; "" without ``redis_sentinels``.

    Raises ConfigError for options that contradict each other.
    """
    if not options.redis_sentinels:
        defaults = MasterOptions()
        for name in _BESIDE:
            if getattr(options, name) != getattr(defaults, name):
                raise ConfigError(
                    f"{name} has no effect without redis_sentinels: list them, or write it into redis_url"
                )
        return ""
    # Most configurations have no such options, and a command starts sooner without the module.
    from urllib.parse import quote, urlencode

    if not options.redis_tls and (options.redis_tls_ca or options.redis_tls_cert):
        raise ConfigError("redis_tls_ca and redis_tls_cert have no effect without redis_tls: True")
    if bool(options.redis_tls_cert) != bool(options.redis_tls_key):
        raise ConfigError("redis_tls_cert and redis_tls_key belong together: set both or neither")
    if options.redis_user and not options.redis_password:
        raise ConfigError("redis_user needs redis_password")
    for host in options.redis_sentinels:
        if not host or any(char in host for char in "/@?, "):
            raise ConfigError(f"redis_sentinels: {host!r} is no host; write HOST or HOST:PORT")
    login = ""
    if options.redis_password:
        login = f"{quote(options.redis_user, safe='')}:{quote(options.redis_password, safe='')}@"
    given = {parameter: getattr(options, name) for name, parameter in _PARAMETERS.items() if getattr(options, name)}
    scheme = "rediss" if options.redis_tls else "redis"
    url = f"{scheme}+sentinel://{login}{','.join(options.redis_sentinels)}/{quote(options.redis_sentinel_master, safe='')}"
    url += f"/{options.redis_db}" + (f"?{urlencode(given)}" if given else "")
    if options.redis_url not in ("", url):
        raise ConfigError("redis_url and redis_sentinels name two places for the data: leave one of them out")
    return url


def own_redis_url(redis_url: str, directory: Path) -> str:
    """Return the URL of Redis for the owner of a directory of keys: ``file://DIRECTORY/redis.url``, which ``saltern keygen
    --redis-host`` makes, if that file is there and names the same Redis as ``redis_url``; else ``redis_url``.

    The file also counts if ``redis_url`` names a file that is missing: Redis then has a user for each role, and no user for all.
    """
    own = directory / OWN_URL
    try:
        place = redis_place(own.read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return redis_url
    try:
        named = (
            Path(redis_url.removeprefix(_IN_FILE)).read_text("utf-8").strip() if _IN_FILE in redis_url else redis_url
        )
    except FileNotFoundError:
        named = ""
    except (OSError, UnicodeDecodeError):
        return redis_url
    return f"{_IN_FILE}{own.absolute()}" if redis_place(named) in ("", place) else redis_url
