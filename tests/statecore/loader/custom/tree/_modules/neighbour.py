import salt.utils.stringutils

NUMBER = salt.utils.stringutils.to_num("7")


def number():
    return NUMBER
