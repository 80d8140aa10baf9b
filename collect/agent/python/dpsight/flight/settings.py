"""The options of dpsight.attach()."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpsight.recorder.settings import Settings

_LEAST_EVENTS = 1_000
_LEAST_MIB = 4
EVENT_BYTES = 800  # host memory for each event that is not drained yet


@dataclass(frozen=True)
class Wishes:
    """The options that a caller gave."""

    store: Path
    name: str
    events: int
    journal_bytes: int
    dumps: int
    signals: bool

    @staticmethod
    def checked(
        store: str | os.PathLike[str], name: str | None, events: int, journal_mib: int, dumps: int, signals: bool
    ) -> Wishes:
        """Checks the options. A ValueError names an invalid one."""
        for what, value, least in (
            ("events", events, _LEAST_EVENTS),
            ("journal_mib", journal_mib, _LEAST_MIB),
            ("dumps", dumps, 1),
        ):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"dpsight.attach: {what} must be a whole number of at least {least:,}, not {value!r}")
        path = Path(os.path.abspath(store))
        if path.exists() and not path.is_dir():
            raise ValueError(f"dpsight.attach: {path} is not a folder: give a folder for the runs")
        return Wishes(path, name or "", events, journal_mib << 20, dumps, signals)

    @property
    def ring_bytes(self) -> int:
        """The most host memory that events take before they are drained."""
        return self.events * EVENT_BYTES

    def settings(self, spool: str, environment: Mapping[str, str]) -> Settings:
        """The settings of a recorder that writes its journal into the folder spool."""
        phantom = bool(environment.get("PHANTOM_PROFILE"))
        return Settings(
            {
                **environment,
                "DPSIGHT_SPOOL": spool,
                "DPSIGHT_ALONE": "1",
                "DPSIGHT_MODE": "full",
                "DPSIGHT_SOURCE": "predicted" if phantom else "measured",
                "DPSIGHT_STEPS": "",
                "DPSIGHT_MAX_ENTRIES": str(self.events),
                # There are no windows: events of all steps are recorded, until recording starts over.
                "DPSIGHT_RECORD_STEPS": str(1 << 60),
                "DPSIGHT_WINDOW_STEPS": "0",
            }
        )


def from_environment(environment: Mapping[str, str]) -> Wishes:
    """The options of DPSIGHT_ATTACH=1, from the other environment variables."""

    def number(name: str, default: int) -> int:
        text = environment.get(name, "")
        if text and not text.isdecimal():
            raise ValueError(f"dpsight: {name} must be a whole number, not {text!r}")
        return int(text) if text else default

    return Wishes.checked(
        environment.get("DPSIGHT_ATTACH_STORE") or "runs",
        environment.get("DPSIGHT_ATTACH_NAME"),
        number("DPSIGHT_ATTACH_EVENTS", 200_000),
        number("DPSIGHT_ATTACH_JOURNAL_MIB", 64),
        number("DPSIGHT_ATTACH_DUMPS", 3),
        environment.get("DPSIGHT_ATTACH_SIGNALS", "1") != "0",
    )
