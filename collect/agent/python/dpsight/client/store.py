"""Reads the tables of a store as Arrow, pandas or polars tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

try:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError("dpsight.open needs pyarrow: pip install pyarrow") from error


class Store:
    """The runs in a folder, or the one run whose folder it is. Each table has the rows of all runs, sorted by run id.
    The column run_id distinguishes the runs."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"no such store: {self.path}")
        one = (self.path / "run.json").is_file()
        self._folders = [self.path] if one else sorted(file.parent for file in self.path.glob("*/run.json"))
        if not self._folders:
            raise FileNotFoundError(f"{self.path} holds no run")

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The manifests of the runs, with name, parameters, status and further facts."""
        return [json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in self._folders]

    @property
    def tables(self) -> list[str]:
        """The names of all tables that at least one run has."""
        return sorted({file.stem for folder in self._folders for file in folder.glob("*.parquet")})

    def arrow(self, table: str) -> Any:
        """Returns a table as a pyarrow.Table. Rows of a run without some column have null in it."""
        files = [folder / f"{table}.parquet" for folder in self._folders]
        parts = [pyarrow.parquet.ParquetFile(file).read() for file in files if file.is_file()]
        if not parts:
            known = ", ".join(self.tables) or "none (dpsight ingest makes them)"
            raise KeyError(f"no run of {self.path} has a table {table}; known: {known}")
        return pyarrow.concat_tables(parts, promote_options="default")

    def pandas(self, table: str) -> Any:
        """Returns a table as a pandas.DataFrame."""
        return self.arrow(table).to_pandas()

    def polars(self, table: str) -> Any:
        """Returns a table as a polars.DataFrame."""
        import polars  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return polars.from_arrow(self.arrow(table))

    def __repr__(self) -> str:
        return f"dpsight.open({str(self.path)!r}): {len(self._folders)} runs, tables {', '.join(self.tables)}"
