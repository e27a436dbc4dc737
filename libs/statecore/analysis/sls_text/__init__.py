"""SLS files as text: readers that accept half-typed files, for editors, and the formatter. Nothing is rendered here.

``jinja_regions`` finds the Jinja tags of a text, ``lines`` the keys, values and list items around them. Both return what they
understand and pass over the rest; no text raises an error. ``formatting`` rewrites white space and proves that nothing
else changed.
"""
