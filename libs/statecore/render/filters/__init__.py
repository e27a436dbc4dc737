"""Jinja filters and tests that Salt has and formulas use: two tables."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import secrets
import shlex
import string
from collections.abc import Callable, Mapping
from typing import Any

from statecore.render.filters import addresses, lists, text

_LETTERS = string.ascii_letters + string.digits


def random_text(size: Any = 32, *_: Any, **__: Any) -> str:
    """A text that nobody can guess."""
    return "".join(secrets.choice(_LETTERS) for _ in range(int(size)))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "append_dict_key_value": lists.append_value,
    "avg": lists.average,
    "base64_decode": text.base64_decode,
    "base64_encode": text.base64_encode,
    "basename": os.path.basename,
    "check_whitelist_blacklist": text.allowed,
    "combinations": itertools.combinations,
    "combinations_with_replacement": itertools.combinations_with_replacement,
    "compare_dicts": lists.compare_dicts,
    "compare_lists": lists.compare_lists,
    "compress": itertools.compress,
    "contains_whitespace": lambda value: any(char.isspace() for char in value),
    "date_format": text.strftime,
    "dict_to_sls_yaml_params": text.sls_parameters,
    "difference": lists.difference,
    "dirname": os.path.dirname,
    "exactly_n_true": lists.exactly,
    "exactly_one_true": lists.exactly,
    "extend_dict_key_value": lists.extend_value,
    "filter_by_networks": addresses.filter_by_networks,
    "flatten": lists.flatten,
    "from_entries": lists.from_entries,
    "hmac": text.hmac_fits,
    "hmac_compute": text.hmac_text,
    "human_to_bytes": text.human_to_bytes,
    "intersect": lists.intersect,
    "ip_host": addresses.ip_host,
    "ipaddr": addresses.ipaddr,
    "ipv4": addresses.ipv4,
    "ipv6": addresses.ipv6,
    "ipwrap": addresses.ipwrap,
    "is_hex": text.is_hex,
    "is_ip": addresses.is_address(None),
    "is_ipv4": addresses.is_address(4),
    "is_ipv6": addresses.is_address(6),
    "is_iter": lists.is_iterable,
    "is_list": lambda value: isinstance(value, list),
    "json": text.json_text,
    "load_json": text.load_json,
    "load_text": str,
    "load_yaml": text.load_yaml,
    "max": max,
    "md5": text.digest("md5"),
    "method_call": text.method_call,
    "min": min,
    "network_hosts": addresses.network_hosts,
    "network_size": addresses.network_size,
    "path_join": os.path.join,
    "permutations": itertools.permutations,
    "product": itertools.product,
    "python": text.python_text,
    "quote": lambda value: shlex.quote(str(value)),
    "rand_str": random_text,
    "random_hash": lambda size=9999999999, hash_type="sha256": hashlib.new(
        hash_type, secrets.token_bytes(32)
    ).hexdigest(),
    "random_sample": lambda value, size, seed=None: random.Random(seed).sample(list(value), size),
    "random_shuffle": lambda value, seed=None: random.Random(seed).sample(list(value), len(value)),
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
    "substring_in_list": lambda part, whole: any(part in each for each in whole),
    "symmetric_difference": lists.symmetric_difference,
    "to_bool": text.to_bool,
    "to_bytes": lambda value: str(value).encode(),
    "to_camelcase": text.to_camelcase,
    "to_entries": lists.to_entries,
    "to_num": text.to_num,
    "to_snake_case": text.to_snake_case,
    "tojson": text.json_for_html,
    "traverse": lists.traverse,
    "union": lists.union,
    "unique": lists.unique,
    "update_dict_key_value": lists.update_value,
    "uuid": text.uuid_of,
    "xml": text.xml,
    "yaml": text.yaml_text,
    "yaml_dquote": text.yaml_dquote,
    "yaml_encode": text.yaml_encode,
    "yaml_squote": text.yaml_squote,
    "zip": zip,
    "zip_longest": itertools.zip_longest,
}

TESTS: Mapping[str, Callable[..., bool]] = {
    "list": lambda value: isinstance(value, list),
    "match": lambda value, pattern, ignorecase=False, multiline=False: (
        text.regex_match(value, pattern, ignorecase, multiline) is not None
    ),
    "equalto": lambda value, other: bool(value == other),
}

__all__ = ["FILTERS", "TESTS"]
