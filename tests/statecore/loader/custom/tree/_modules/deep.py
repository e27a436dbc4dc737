"""Makes deep use of salt.utils"""

import salt.utils.args
import salt.utils.data
import salt.utils.dictupdate
import salt.utils.files
import salt.utils.hashutils
import salt.utils.path
import salt.utils.platform
import salt.utils.stringutils
import salt.utils.url
import salt.utils.versions
import salt.utils.yaml
from salt.utils.odict import OrderedDict


def written(path):
    with salt.utils.files.fopen(path, "w") as fp_:
        fp_.write(salt.utils.stringutils.to_str(salt.utils.yaml.safe_dump({"a": [1, 2]}, default_flow_style=False)))
    with salt.utils.files.fopen(path) as fp_:
        data = salt.utils.yaml.safe_load(fp_)
    digest = salt.utils.hashutils.get_hash(path)
    salt.utils.files.safe_rm(path)
    return [data, digest, salt.utils.files.is_empty(path)]


def merged():
    base = OrderedDict([("a", OrderedDict([("x", 1)])), ("b", [1])])
    salt.utils.dictupdate.update(base, {"a": {"y": 2}, "b": [2]}, merge_lists=True)
    return salt.utils.data.traverse_dict_and_list(base, "a:y"), base["b"]


def versions():
    return [
        salt.utils.versions.compare("1.2", "<", "1.10"),
        salt.utils.platform.is_windows(),
        salt.utils.path.join("/a", "b"),
        salt.utils.url.parse("salt://x?saltenv=dev"),
        salt.utils.args.split_input("a,b"),
        salt.utils.data.is_true("true"),
    ]
