def returner(ret):
    with open(__opts__["cachedir"] + "/filed", "a") as file:
        file.write("{}\n".format(ret["fun"]))
