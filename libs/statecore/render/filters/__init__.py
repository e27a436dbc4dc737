"""Tables of Salt's own Jinja filters, tests and global functions: name to function."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
import string
from collections.abc import Callable, Iterable, Mapping

import jinja2

from statecore.render.filters import addresses, calls, combinatorics, lists, machine, text
from statecore.render.jinja.closed import ClosedEnvironment

_LETTERS = string.ascii_letters + string.digits


def random_text(size: int | str = 32) -> str:
    """Jinja filter ``random_str``: return a random text of ``size`` letters and digits, from a cryptographic source."""
    # Imported here, as below: few templates use random values, and every process would load the module.
    import secrets

    return "".join(secrets.choice(_LETTERS) for _ in range(int(size)))


def sample(
    values: Iterable[object], size: int, seed: int | float | str | bytes | bytearray | None = None
) -> list[object]:
    """Jinja filter ``random_sample``: return ``size`` randomly chosen items of a list. The same seed chooses the same
    items.
    """
    import random

    return random.Random(seed).sample(list(values), size)


def random_digest(size: int | str = 9999999999, hash_type: str | None = None) -> str:
    """Jinja filter ``random_hash``: return the hexadecimal digest (MD5 by default) of a random number up to ``size``.

    The number is from a cryptographic source.
    """
    import secrets

    number = secrets.randbelow(int(size) + 1)
    return hashlib.new(hash_type or "md5", str(number).encode()).hexdigest()


FILTERS: Mapping[str, Callable[..., object]] = {
    "append_dict_key_value": lists.append_value,
    "avg": lists.average,
    "base64_decode": text.base64_decode,
    "base64_encode": text.base64_encode,
    "basename": os.path.basename,
    "check_whitelist_blacklist": text.allowed,
    "combinations": text.strict(combinatorics.combinations),
    "combinations_with_replacement": text.strict(combinatorics.combinations_with_replacement),
    "compare_dicts": lists.compare_dicts,
    "compare_lists": lists.compare_lists,
    "compress": text.strict(itertools.compress),
    "contains_whitespace": lambda value: any(char.isspace() for char in value),
    "date_format": text.strftime,
    "dict_to_sls_yaml_params": text.strict(text.sls_parameters),
    "difference": lists.difference,
    "dirname": os.path.dirname,
    "dns_check": machine.dns_check_filter,
    "exactly_n_true": lists.exactly,
    "exactly_one_true": lists.exactly_one,
    "extend_dict_key_value": lists.extend_value,
    "file_hashsum": machine.file_hashsum,
    "filter_by_networks": addresses.filter_by_networks,
    "flatten": lists.flatten,
    "from_entries": lists.from_entries,
    "gen_mac": machine.gen_mac,
    "get_uid": machine.get_uid,
    "hmac": text.hmac_matches,
    "hmac_compute": text.hmac_text,
    "http_query": machine.http_query,
    "human_to_bytes": text.human_to_bytes,
    "intersect": lists.intersect,
    "ip_host": addresses.ip_host,
    "ipaddr": addresses.ipaddr,
    "ipv4": addresses.ipv4,
    "ipv6": addresses.ipv6,
    "ipwrap": addresses.ipwrap,
    "is_bin_file": machine.is_bin_file,
    "is_empty": machine.is_empty,
    "is_hex": text.is_hex,
    "is_ip": addresses.is_address(None),
    "is_ipv4": addresses.is_address(4),
    "is_ipv6": addresses.is_address(6),
    "is_iter": lists.is_iterable,
    "is_list": lambda value: isinstance(value, list),
    "is_text_file": machine.is_text_file,
    "json": text.strict(text.json_text),
    "json_decode_dict": lists.encoded,
    "json_decode_list": lists.encoded,
    "json_encode_dict": lists.encoded,
    "json_encode_list": lists.encoded,
    "json_query": lists.json_query,
    "list_files": machine.list_files,
    "load_json": text.strict(text.load_json),
    "load_text": text.strict(str),
    "load_yaml": text.strict(text.load_yaml),
    "mac_str_to_bytes": addresses.mac_bytes,
    "max": calls.largest,
    "md5": text.digest("md5"),
    "method_call": calls.method_call,
    "min": calls.smallest,
    "mysql_to_dict": lists.mysql_rows,
    "network_hosts": addresses.network_hosts,
    "network_size": addresses.network_size,
    "path_join": text.path_join,
    "permutations": text.strict(combinatorics.permutations),
    "product": text.strict(combinatorics.product),
    "python": text.strict(text.python_text),
    "quote": lambda value: shlex.quote(str(value)),
    "rand_str": random_digest,
    "random_hash": random_digest,
    "random_sample": sample,
    "random_shuffle": lambda value, seed=None: sample(value, len(value), seed),
    "random_str": random_text,
    "regex_escape": re.escape,
    "regex_match": text.regex_match,
    "regex_replace": text.regex_replace,
    "regex_search": text.regex_search,
    "sequence": lists.sequence,
    "set_dict_key_value": lists.set_value,
    "sha1": text.digest("sha1"),
    "sha256": text.digest("sha256"),
    "sha512": text.digest("sha512"),
    "skip": lambda value: "",
    "sorted_ignorecase": lambda value: sorted(value, key=str.lower),
    "str_to_num": text.to_num,
    "strftime": text.strftime,
    "substring_in_list": lambda value, list_to_search: any(value in each for each in list_to_search),
    "symmetric_difference": lists.symmetric_difference,
    "to_bool": text.to_bool,
    "to_bytes": text.to_bytes,
    "to_camelcase": text.to_camelcase,
    "to_entries": lists.to_entries,
    "to_num": text.to_num,
    "to_snake_case": text.to_snake_case,
    "tojson": text.strict(text.json_for_html),
    "traverse": lists.traverse,
    "union": lists.union,
    "unique": lists.unique,
    "update_dict_key_value": lists.update_value,
    "uuid": text.uuid_of,
    "which": machine.which,
    "xml": text.strict(text.xml),
    "yaml": text.strict(text.yaml_text),
    "yaml_dquote": text.yaml_dquote,
    "yaml_encode": text.yaml_encode,
    "yaml_squote": text.yaml_squote,
    "zip": text.strict(zip),
    "zip_longest": text.strict(itertools.zip_longest),
}

TESTS: Mapping[str, Callable[..., bool]] = {
    "list": lambda value: isinstance(value, list),
    "match": lambda value, pattern, ignorecase=False, multiline=False: (
        text.regex_match(value, pattern, ignorecase, multiline) is not None
    ),
    "equalto": lambda value, other: bool(value == other),
}


@jinja2.pass_environment
def if_else(environment: ClosedEnvironment, *pairs: object, **options: object) -> object:
    """Jinja function ``ifelse``: return the result of the execution function ``match.ifelse`` for the same arguments."""
    return environment.functions["match.ifelse"](*pairs, **options)


def fail(msg: object) -> None:
    """Jinja function ``raise``: stop the rendering by raising TemplateError with the message ``msg``."""
    raise jinja2.TemplateError(str(msg))


GLOBALS: Mapping[str, Callable[..., object]] = {"ifelse": if_else, "raise": fail}

__all__ = ["FILTERS", "GLOBALS", "TESTS"]
