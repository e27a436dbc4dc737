def serialize(obj, **options):
    return str(obj)[::-1]


def deserialize(text, **options):
    return text[::-1]
