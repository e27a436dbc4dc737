"""Run by the oracle's Python: Salt's user and group states over accounts that are played as ``Debian`` of ``conftest.py`` has them.

Standard input: a list of [state, function, arguments]. Standard output: for each what was told in test mode, applied, and applied
again; an exception is its text.
"""

import json
import os
import sys

import salt.states.group
import salt.states.user
import salt.utils.user

#: What the group state clears of the module that serves test.ping.
__context__ = {}

_GECOS = ("fullname", "roomnumber", "workphone", "homephone", "other")
_DAYS = ("lstchg", "min", "max", "warn", "inact", "expire")


class Accounts:
    """root and web; groups root, web, adm with web in it, staff."""

    def __init__(self):
        self.users = {
            "root": {"uid": 0, "gid": 0, "home": "/root", "shell": "/bin/bash", "gecos": "root"},
            "web": {"uid": 33, "gid": 33, "home": "/srv/web", "shell": "/usr/sbin/nologin", "gecos": "Web,1,2"},
        }
        self.groups = {"root": [0, []], "web": [33, []], "adm": [4, ["web"]], "staff": [50, []]}
        days = dict(zip(_DAYS, (19000, 0, 99999, 7, -1, -1), strict=True))
        self.shadow = {"root": {"passwd": "*", **days}, "web": {"passwd": "!", **days}}
        self.places = {"/root", "/srv/web"}

    # ------------------------------------------------------------------------------------------------------------- users

    def info(self, name):
        if name not in self.users:
            return {}
        row = self.users[name]
        own = [group for group, (gid, members) in self.groups.items() if gid == row["gid"] or name in members]
        gecos = (row["gecos"].split(",", 4) + [""] * 5)[:5]
        kept = {key: row[key] for key in ("uid", "gid", "home", "shell")}
        return {"name": name, "passwd": "x", "groups": sorted(own), **kept, **dict(zip(_GECOS, gecos, strict=True))}

    def add(self, name, uid, gid, groups, home, shell, createhome, usergroup, **given):
        uid = 1000 if uid is None else uid
        number = self.gid(gid) if gid is not None else uid
        if gid is None and usergroup is not False:
            self.groups[name] = [number, []]
        gecos = ",".join(str(given.get(key) or "") for key in _GECOS).rstrip(",")
        home = home or f"/home/{name}"
        self.users[name] = {"uid": uid, "gid": number, "home": home, "shell": shell or "/bin/sh", "gecos": gecos}
        self.shadow[name] = {"passwd": "!", **dict(zip(_DAYS, (19000, 0, 99999, 7, -1, -1), strict=True))}
        for group in groups or ():
            self.groups[group][1].append(name)
        if createhome:
            self.places.add(home)
        return True

    def delete(self, name, purge=False, force=False, local=False):
        del self.users[name], self.shadow[name]
        if name in self.groups and not self.groups[name][1]:
            del self.groups[name]
        for _, members in self.groups.values():
            members[:] = [member for member in members if member != name]
        return True

    def change(self, key):
        def changed(name, value, **kwargs):
            if key in _GECOS:
                parts = (self.users[name]["gecos"].split(",", 4) + [""] * 5)[:5]
                parts[_GECOS.index(key)] = value
                self.users[name]["gecos"] = ",".join(parts).rstrip(",")
            else:
                self.users[name][key] = self.gid(value) if key == "gid" else value
            return True

        return changed

    def chhome(self, name, home, persist=False):
        if persist:
            self.places.discard(self.users[name]["home"])
            self.places.add(home)
        self.users[name]["home"] = home
        return True

    def chgroups(self, name, groups, append=False):
        for group, (_, members) in self.groups.items():
            if group in groups and name not in members:
                members.append(name)
            elif group not in groups and name in members and not append:
                members.remove(name)
        return True

    # ------------------------------------------------------------------------------------------------- passwords, groups

    def secret(self, name, **changes):
        self.shadow[name].update(changes)
        return True

    def shadowed(self, name):
        return {"name": name, **self.shadow[name]} if name in self.shadow else dict.fromkeys(("passwd", *_DAYS), "")

    def gid(self, group):
        return group if isinstance(group, int) else self.groups[group][0] if group in self.groups else ""

    def group(self, name):
        if name not in self.groups:
            return {}
        gid, members = self.groups[name]
        return {"name": name, "passwd": "x", "gid": gid, "members": list(members)}

    def table(self):
        aged = {
            "date": "lstchg",
            "mindays": "min",
            "maxdays": "max",
            "inactdays": "inact",
            "warndays": "warn",
            "expire": "expire",
        }
        return {
            "user.info": self.info,
            "user.add": lambda name, **given: self.add(name, **given),
            "user.delete": self.delete,
            "user.chhome": self.chhome,
            "user.chgroups": self.chgroups,
            **{f"user.ch{key}": self.change(key) for key in ("uid", "gid", "shell", *_GECOS)},
            "shadow.info": self.shadowed,
            "shadow.default_hash": lambda: "!",
            "shadow.set_password": lambda name, value: self.secret(name, passwd=value),
            "shadow.del_password": lambda name: self.secret(name, passwd=""),
            "shadow.lock_password": lambda name: self.secret(name, passwd="!" + self.shadow[name]["passwd"]),
            "shadow.unlock_password": lambda name: self.secret(name, passwd=self.shadow[name]["passwd"].lstrip("!")),
            **{f"shadow.set_{key}": self.aging(field) for key, field in aged.items()},
            "file.group_to_gid": self.gid,
            "file.gid_to_group": self.group_name,
            "file.mkdir": lambda path, *args: self.places.add(path),
            "test.ping": lambda: True,
            "shadow.gen_password": lambda password, **kwargs: "$6$made",
            "group.info": self.group,
            "group.getent": lambda: [self.group(name) for name in self.groups],
            "group.add": lambda name, gid=None, **kwargs: (
                self.groups.update({name: [1000 if gid is None else int(gid), []]}) or True
            ),
            "group.delete": lambda name, **kwargs: bool(self.groups.pop(name)),
            "group.chgid": lambda name, gid, **kwargs: self.groups[name].__setitem__(0, gid) or True,
            "group.adduser": lambda name, user: self.groups[name][1].append(user) or True,
            "group.deluser": lambda name, user: self.groups[name][1].remove(user) or True,
            "group.members": lambda name, users: (
                self.groups[name].__setitem__(1, users if isinstance(users, list) else users.split(",")) or True
            ),
        }

    def aging(self, field):
        return lambda name, value: self.secret(name, **{field: value})

    def group_name(self, gid):
        return gid if isinstance(gid, str) else next((name for name, row in self.groups.items() if row[0] == gid), "")


def main():
    found = os.path.isdir
    told = []
    for state, function, arguments in json.load(sys.stdin):
        module = getattr(salt.states, state)
        accounts = Accounts()
        module.__salt__, module.__context__, module.__grains__ = accounts.table(), {}, {"kernel": "Linux"}
        salt.utils.user.get_group_list = lambda name, accounts=accounts: accounts.info(name)["groups"]
        os.path.isdir = lambda path, accounts=accounts: path in accounts.places
        answers = []
        for test in (True, False, False):
            module.__opts__ = {"test": test}
            try:
                entry = getattr(module, function)(**json.loads(json.dumps(arguments)))
                answers.append([entry["result"], entry["changes"], entry["comment"]])
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                answers.append(f"{type(error).__name__}: {error}")
        told.append(answers)
    os.path.isdir = found
    json.dump(told, sys.stdout, default=str)


main()
