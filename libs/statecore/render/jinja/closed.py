"""What templates may read and call: one table of types for every Jinja environment.

A template sees data and closed callables. Attributes are read from the types of ``_DATA`` and ``_JINJA`` alone, and from
the function table ``salt``; a subclass of a data type, such as a namedtuple, shows the methods of the data type and its own
fields. Functions, methods, classes and all other objects have no attributes and no items for a template, because a
function leads to its module, and a bound method to its object. ``is_safe_callable`` names the types that a template calls.

Filters that read an attribute or call a value do it through this environment, never by Python's ``getattr``.
"""

from __future__ import annotations

import datetime
import ipaddress
import types
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple

import jinja2
from jinja2.environment import TemplateModule
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, TemplateReference, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace, missing
from markupsafe import Markup

from statecore.model.lazy import LazyMap
from statecore.render.jinja.functions import SaltFunctions, SaltModule
from statecore.render.jinja.variables import Copied

#: Builtin types of data. All their public attributes return data.
_DATA: frozenset[type] = frozenset(
    {
        *(str, int, float, complex, bool, bytes, bytearray, type(None)),
        *(list, tuple, dict, OrderedDict, set, frozenset, range, Markup),
        *(type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType),
        *(type(OrderedDict().keys()), type(OrderedDict().values()), type(OrderedDict().items())),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(ipaddress.IPv4Address, ipaddress.IPv4Interface, ipaddress.IPv4Network),
        *(ipaddress.IPv6Address, ipaddress.IPv6Interface, ipaddress.IPv6Network),
        LazyMap,
    }
)

#: Jinja's own types: all their public attributes return data, macros, or what the template itself stored.
_JINJA: frozenset[type] = frozenset({LoopContext, Namespace, Cycler, Joiner, Macro, TemplateModule, BlockReference})

#: Types with public attributes.
_OPEN = _DATA | _JINJA | {SaltFunctions, SaltModule}

#: Types with items.
_INDEXED: frozenset[type] = frozenset(
    {*(str, bytes, bytearray, list, tuple, dict, OrderedDict, range, Markup, types.MappingProxyType, LazyMap)}
    | {SaltFunctions, TemplateReference}
    | {ipaddress.IPv4Network, ipaddress.IPv6Network}
)

#: Type of the descriptors of a namedtuple's fields.
_FIELD = type(namedtuple("_Named", ("field",)).field)  # type: ignore[attr-defined]

#: Class -> names of its methods that templates may call.
_OF_CLASSES: Mapping[type, frozenset[str]] = {dict: frozenset({"fromkeys"}), OrderedDict: frozenset({"fromkeys"})}

#: Types of objects that a template may call. ``type`` is limited to the classes in ``_CLASSES``.
_CALLED: frozenset[type] = frozenset(
    {types.FunctionType, types.BuiltinFunctionType, types.MethodType, Macro, BlockReference, LoopContext, Joiner}
)

#: Classes that a template may call, to make an object.
_CLASSES: frozenset[type] = frozenset({dict, OrderedDict, Cycler, Joiner, Namespace})

#: Results of a look-up: there is no such attribute; a template may not read it.
_ABSENT: Any = object()
_REFUSED: Any = object()


class Limits(NamedTuple):
    """What the filters of an environment may do on the machine. Made once, when the environment is made."""

    #: Root directory of the managed host: paths of filters are resolved below it.
    host_root: str = "/"
    #: The filter ``dns_check`` may look up names and open connections.
    dns_check: bool = True
    #: The filter ``http_query`` may send requests.
    http_query: bool = False

    @classmethod
    def of(cls, opts: Mapping[str, object]) -> Limits:
        """Return the limits that the options ``host_root``, ``jinja_dns_check`` and ``jinja_http_query`` set now."""
        return cls(
            str(opts.get("host_root") or "/"),
            bool(opts.get("jinja_dns_check", True)),
            bool(opts.get("jinja_http_query")),
        )


class ClosedContext(Context):
    """Jinja's table of the variables of one rendering. A ``Copied`` in it is copied when the template names it."""

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a variable, or Jinja's ``missing``."""
        if key in self.vars:
            return self.vars[key]
        value = self.parent.get(key, missing)
        return value.value() if type(value) is Copied else value


class ClosedEnvironment(SandboxedEnvironment):
    """Jinja's environment in which a template reads and calls only what the tables of this module name.

    ``limits`` and ``functions`` are for filters. No template reaches them, so no template changes them.
    """

    context_class = ClosedContext

    def __init__(
        self, *, limits: Limits | None = None, functions: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        """Make an environment with Jinja's ``options``. ``functions`` are the execution functions that filters call."""
        super().__init__(**options)
        self.limits = Limits() if limits is None else limits
        self.functions: Mapping[str, Any] = {} if functions is None else functions
        # Some versions of Jinja give ``str.format`` itself here.
        self.filters["attr"] = _attr

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the value of ``obj.attribute`` in a template: the attribute, else the item of this name, else an undefined
        value. Using an undefined value of a refused attribute raises SecurityError.
        """
        value = self._attribute(obj, attribute)
        if value is _ABSENT:
            return self._item(obj, attribute)
        return self.unsafe_undefined(obj, attribute) if value is _REFUSED else value

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return the value of ``obj[argument]`` in a template: the item, else the attribute of this name, else an undefined
        value.
        """
        if type(obj) in _INDEXED or _items_of_base(obj):
            try:
                return obj[argument]
            except (TypeError, LookupError):
                pass
        elif isinstance(obj, Undefined):
            # Most undefined values raise the error that names the missing variable.
            return obj[argument]
        return self.attribute(obj, str(argument)) if isinstance(argument, str) else self._missing(obj, argument)

    def attribute(self, obj: Any, name: str) -> Any:
        """Return the value of the attribute ``name``, else an undefined value. Items do not count."""
        value = self._attribute(obj, name)
        if value is _ABSENT:
            return self._missing(obj, name)
        return self.unsafe_undefined(obj, name) if value is _REFUSED else value

    def method(self, obj: Any, name: str) -> Any:
        """Return the attribute ``name`` of ``obj`` for a filter that calls it; None if there is no such attribute.

        Raise SecurityError if a template may not read it.
        """
        value = self._attribute(obj, name)
        if value is _REFUSED:
            raise SecurityError(f"'{name}' of a '{type(obj).__name__}' is not a public method of data")
        return None if value is _ABSENT else value

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may read the attribute. Jinja's own filters ask it."""
        found = self._attribute(obj, attr)
        return found is not _ABSENT and found is not _REFUSED

    def _attribute(self, obj: Any, name: str) -> Any:
        kind = type(obj)
        if kind in _OPEN:
            if name[:1] == "_":
                # A map may have the key; a name of Python is refused.
                return _REFUSED if hasattr(kind, name) else _ABSENT
            value = getattr(obj, name, _ABSENT)
            if (kind is str or kind is Markup) and value is not _ABSENT:
                return self.wrap_str_format(value) or value
            return value
        if isinstance(obj, Undefined):
            # Most undefined values raise UndefinedError here, which names the missing variable.
            return obj[name] if name[:1] == "_" else getattr(obj, name, _ABSENT)
        if isinstance(obj, type):
            return getattr(obj, name) if obj in _OF_CLASSES and name in _OF_CLASSES[obj] else _REFUSED
        value = _of_base(obj, name)
        if isinstance(obj, str) and value is not _ABSENT and value is not _REFUSED:
            return self.wrap_str_format(value) or value
        return value

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether a template may call the object."""
        kind = type(obj)
        if kind in _CALLED:
            return not (
                kind is types.FunctionType
                and (getattr(obj, "unsafe_callable", False) or getattr(obj, "alters_data", False))
            )
        # Calling an undefined value raises UndefinedError, which names the missing variable.
        return (isinstance(obj, type) and obj in _CLASSES) or isinstance(obj, Undefined)

    def _item(self, obj: Any, name: str) -> Any:
        if type(obj) in _INDEXED or _items_of_base(obj):
            try:
                return obj[name]
            except (TypeError, LookupError):
                pass
        return self._missing(obj, name)

    def _missing(self, obj: Any, name: Any) -> Undefined:
        return self.undefined(obj=obj, name=name)


@jinja2.pass_environment
def _attr(environment: ClosedEnvironment, obj: object, name: str) -> object:
    """Jinja filter ``attr``: return an attribute of a value, else an undefined value. Items do not count."""
    return environment.attribute(obj, str(name))


def _of_base(obj: object, name: str) -> Any:
    """Return the attribute ``name`` of an object whose class inherits from a type of data: a method of that type, or a field
    of a namedtuple.

    ``_ABSENT`` if its class has no such attribute. ``_REFUSED`` if the object is no data, or if the attribute is the
    subclass's own.
    """
    kind = type(obj)
    if kind is TemplateReference:
        return _ABSENT
    if _DATA.isdisjoint(kind.__mro__):
        return _REFUSED
    for base in kind.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            if name[:1] == "_" or not (base in _DATA or type(found) is _FIELD):
                return _REFUSED
            # Bound here: an attribute of the same name in the object itself would take its place.
            return found.__get__(obj, kind)
    return _ABSENT


def _items_of_base(obj: object) -> bool:
    """Return whether the items of an object are those of a type of data from which its class inherits."""
    kind = type(obj)
    if _INDEXED.isdisjoint(kind.__mro__):
        return False
    return next((base in _DATA for base in kind.__mro__ if "__getitem__" in base.__dict__), False)
