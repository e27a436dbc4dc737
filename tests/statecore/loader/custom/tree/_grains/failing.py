def fails():
    raise RuntimeError("a grain that fails")
