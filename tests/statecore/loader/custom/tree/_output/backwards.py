def output(data, **kwargs):
    return repr(data)[::-1]
