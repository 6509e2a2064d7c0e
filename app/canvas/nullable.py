"""Schemas that also admit null: `anyOf` of something and null, or null among the types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.canvas.alternatives import LISTS, declared_types
from app.canvas.json import Json
from app.canvas.keyword import CONSTRAINING
from app.canvas.site import Reader, Site


def with_plain_type(site: Site) -> Site:
    """The same schema, a list of one type written as that type."""
    types = declared_types(site)
    return _of_type(site, *types) if len(types) == 1 and isinstance(site.schema["type"], list) else site


def without_null(site: Site, reader: Reader) -> Site:
    """What else a schema admits, where that is one thing; a schema of any other form is returned as it is."""
    types = set(declared_types(site))
    if len(types) == 2 and "null" in types:
        return _of_type(site, *types - {"null"})
    for keyword in LISTS:
        values = site.schema.get(keyword)
        if isinstance(values, list) and len(values) == 2 and site.schema.keys() & CONSTRAINING == {keyword}:
            return _other_of(site, reader, keyword, values)
    return site


def _of_type(site: Site, name: str) -> Site:
    return replace(site, schema={**site.schema, "type": name})


def _other_of(site: Site, reader: Reader, keyword: str, values: list[Json]) -> Site:
    others = [i for i, value in enumerate(values) if not _is_null(value)]
    if len(others) != 1:
        return site
    other = reader.open(values[others[0]], (*site.at(keyword), others[0]), site)
    if other is None:
        return site
    annotations = {key: value for key, value in site.schema.items() if key not in CONSTRAINING}
    places = {key: site.places.get(key, site.path) for key in annotations}
    texts = reader.both_descriptions(annotations, other.schema)
    return replace(other, schema={**other.schema, **annotations, **texts}, places={**other.places, **places})


def _is_null(value: Json) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "null" and value.keys() & CONSTRAINING == {"type"}
