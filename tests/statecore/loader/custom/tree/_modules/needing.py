from salt.utils.decorators import depends, memoize

try:
    import json

    HAS_JSON = True
except ImportError:
    HAS_JSON = False
try:
    import nothing_like_it

    HAS_NOTHING = True
except ImportError:
    HAS_NOTHING = False

CALLS = []


def _fallback(*args):
    return "fallback"


@depends("HAS_JSON")
def there():
    return True


@depends("HAS_NOTHING")
def not_there():
    return True


@depends("nothing_like_it", fallback_function=_fallback)
def stands_in():
    return True


@depends("true", retcode=0)
def by_command():
    return True


@depends("false", retcode=0)
def not_by_command():
    return True


@memoize
def once(value):
    CALLS.append(value)
    return len(CALLS)


def twice():
    return [once("a"), once("a"), once("b")]
