"""The zone data (tzdata) that this process uses: its version, and a hash that tells it from other data."""

from __future__ import annotations

import hashlib
import re
import zoneinfo
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from scheduling.core.zones import zone_names

_NAMED = re.compile(rb"# version ([ -~]{1,20})\s")
ALL_RULES = "tzdata.zi"
"""The file with the rules of all zones. Most installations of tzdata have it."""


class OwnZoneData(NamedTuple):
    """The data of this process.

    Args:
        version: such as `2026b`; empty if it is unknown.
        digest: a hash of the data of all zones.
    """

    version: str
    digest: str


@lru_cache(maxsize=1)
def own_zone_data() -> OwnZoneData:
    """The data that `zoneinfo` reads: that of the machine, or else that of the package tzdata.

    A process keeps the zones that it has loaded. So it notices new data at its next start.
    """
    folders = [Path(folder) for folder in zoneinfo.TZPATH if Path(folder).is_dir()]
    for folder in folders:
        try:
            rules = (folder / ALL_RULES).read_bytes()
        except OSError:
            continue
        match = _NAMED.match(rules)
        return OwnZoneData(match[1].decode().strip() if match else "", hashlib.sha256(rules).hexdigest())
    files = [file for name in sorted(zone_names()) if (file := _file(folders, name)) is not None]
    if not files and (version := _of_package()):
        return OwnZoneData(version, hashlib.sha256(f"tzdata {version}".encode()).hexdigest())
    found = hashlib.sha256()
    for file in files:
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return OwnZoneData("", found.hexdigest())


def _file(folders: list[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _of_package() -> str:
    try:
        return str(import_module("tzdata").IANA_VERSION)[:20]
    except (ImportError, AttributeError):
        return ""
