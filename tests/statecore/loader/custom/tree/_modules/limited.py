__all__ = ["shown"]


def shown():
    return hidden()


def hidden():
    return "hidden"
