"""Addresses of a list with other parameters: its views, its pages, and each filter taken away."""

from django.http import QueryDict

# Where a page of a list begins. Every other change of the list starts at its beginning again.
PLACES = ("cursor", "offset")


def same_list(path: str, query: QueryDict, **changed: str) -> str:
    """``path`` with the parameters of ``query`` as ``changed``; empty ones and the place of a page fall away."""
    wanted = {name: query.get(name, "") for name in query if name not in PLACES} | changed
    kept = QueryDict(mutable=True)
    for name, value in wanted.items():
        if value:
            kept[name] = str(value)
    text = kept.urlencode()
    return f"{path}?{text}" if text else path
