"""Runs the code in docs/python.md that reads a store's tables without dpsight: DuckDB, polars and pandas must read
every table with the rows and types of its files, without casts. Its interpreter needs the packages of
requirements/notebooks.txt.

    read_tables.py STORE
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet

DOCS = Path(__file__).resolve().parent.parent.parent / "docs/python.md"
LIBRARIES = ("duckdb", "polars", "pandas")


def snippets() -> dict[str, str]:
    """Returns, by library, the block of code that reads steps.parquet with it."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    found = {name: [b for b in blocks if "steps.parquet" in b and f"import {name}\n" in b] for name in LIBRARIES}
    return {name: block for name, (block,) in found.items()}


def plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Returns one type for all types of text, since libraries store text differently."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    return pyarrow.string() if is_text else kind


def arrow(value: Any) -> pyarrow.Table:
    if isinstance(value, pandas.DataFrame):
        return pyarrow.Table.from_pandas(value, preserve_index=False)
    return value.to_arrow() if isinstance(value, polars.DataFrame) else value.to_arrow_table()


def main() -> None:
    store = Path(sys.argv[1]).resolve()
    tables = sorted({file.stem for file in store.glob("*/*.parquet")})
    if len(tables) < 8:
        sys.exit(f"{store} has {tables} alone")
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        Path("runs").symlink_to(store)
        for table in tables:
            files = [pyarrow.parquet.ParquetFile(file).read() for file in sorted(store.glob(f"*/{table}.parquet"))]
            want = pyarrow.concat_tables(files, promote_options="permissive")
            for library, snippet in snippets().items():
                names: dict[str, Any] = {}
                exec(snippet.replace("steps.parquet", f"{table}.parquet"), names)
                got = arrow(names["steps"])
                if sorted(got.column_names) != sorted(want.column_names):
                    wrong.append(f"{library}, {table}: {got.column_names}, not {want.column_names}")
                    continue
                for column in want.column_names:
                    kinds = plain(got[column].type), plain(want[column].type)
                    if kinds[0] != kinds[1]:
                        wrong.append(f"{library}, {table}.{column}: {kinds[0]}, not {kinds[1]}")
                    elif got[column].to_pylist() != want[column].to_pylist():
                        wrong.append(f"{library}, {table}.{column}: other values")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(tables)} tables, each by {', '.join(LIBRARIES)}")


if __name__ == "__main__":
    main()
