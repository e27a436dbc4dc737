def execute(opts, data, func, args, kwargs):
    __context__["passed"] = True
