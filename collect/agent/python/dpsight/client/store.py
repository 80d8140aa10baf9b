"""The tables of a store, as Arrow, pandas or polars have them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

try:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError("dpsight.open reads tables by pyarrow, which is not installed: pip install pyarrow") from error


class Store:
    """The runs below a folder, or the one run that the folder holds. Each table has the rows of all runs, one run after
    another by their ids; the column run_id tells them apart."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"there is no store {self.path}")
        one = (self.path / "run.json").is_file()
        self._folders = [self.path] if one else sorted(file.parent for file in self.path.glob("*/run.json"))
        if not self._folders:
            raise FileNotFoundError(f"{self.path} holds no run")

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The manifests of the runs: name, parameters, status, and the other facts of each."""
        return [json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in self._folders]

    @property
    def tables(self) -> list[str]:
        """The names of the tables that any of the runs has."""
        return sorted({file.stem for folder in self._folders for file in folder.glob("*.parquet")})

    def arrow(self, table: str) -> Any:
        """A table as a pyarrow.Table. A column that a run lacks is null in its rows."""
        files = [folder / f"{table}.parquet" for folder in self._folders]
        parts = [pyarrow.parquet.ParquetFile(file).read() for file in files if file.is_file()]
        if not parts:
            known = ", ".join(self.tables) or "none: dpsight ingest derives them"
            raise KeyError(f"no run of {self.path} has a table {table}; there are {known}")
        return pyarrow.concat_tables(parts, promote_options="default")

    def pandas(self, table: str) -> Any:
        """A table as a pandas.DataFrame."""
        return self.arrow(table).to_pandas()

    def polars(self, table: str) -> Any:
        """A table as a polars.DataFrame."""
        import polars  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return polars.from_arrow(self.arrow(table))

    def __repr__(self) -> str:
        return f"dpsight.open({str(self.path)!r}): {len(self._folders)} runs, tables {', '.join(self.tables)}"
