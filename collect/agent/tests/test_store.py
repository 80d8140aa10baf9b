"""Tests that dpsight.open returns the tables that DuckDB reads from the same files. The interpreter needs
requirements/notebooks.txt. DPSIGHT_TEST_STORE names the store."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import dpsight  # noqa: E402

STORE = Path(os.environ["DPSIGHT_TEST_STORE"])


class TestStore(unittest.TestCase):
    def test_as_duckdb(self) -> None:
        store = dpsight.open(STORE)
        self.assertGreater(len(store.tables), 8)
        for table in store.tables:
            with self.subTest(table):
                ours = store.arrow(table)
                query = "select * from read_parquet(?, union_by_name=true)"
                files = [str(file) for file in sorted(STORE.glob(f"*/{table}.parquet"))]
                theirs = duckdb.sql(query, params=[files])
                self.assertEqual(ours.column_names, theirs.columns)
                self.assertTrue(ours.equals(theirs.to_arrow_table().cast(ours.schema)))

    def test_frames(self) -> None:
        store = dpsight.open(STORE)
        steps = store.arrow("steps")
        self.assertEqual(store.polars("steps").to_arrow().column("step").to_pylist(), steps.column("step").to_pylist())
        self.assertEqual(store.pandas("steps")["step"].tolist(), steps.column("step").to_pylist())
        self.assertEqual({run["run_id"] for run in store.runs}, set(steps.column("run_id").to_pylist()))

    def test_one_run(self) -> None:
        folder = next(file.parent for file in sorted(STORE.glob("*/run.json")))
        run = dpsight.open(folder)
        self.assertEqual(run.arrow("steps").column("run_id").unique().to_pylist(), [run.runs[0]["run_id"]])

    def test_a_run_without_a_column(self) -> None:
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as work:
            folders = [file.parent for file in sorted(STORE.glob("*/run.json"))][:2]
            for folder in folders:
                shutil.copytree(folder, Path(work) / folder.name)
            old = Path(work) / folders[0].name / "steps.parquet"
            pyarrow.parquet.write_table(pyarrow.parquet.read_table(old).drop_columns(["samples"]), old)
            counts = dpsight.open(work).arrow("steps").column("samples")
            self.assertEqual(counts.null_count, pyarrow.parquet.read_metadata(old).num_rows)
            old.unlink()
            self.assertEqual(len(dpsight.open(work).arrow("steps")), len(dpsight.open(folders[1]).arrow("steps")))

    def test_wrong_names(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "no such store"):
            dpsight.open(STORE / "absent")
        with self.assertRaisesRegex(FileNotFoundError, "no run"):
            dpsight.open(Path(__file__).parent)
        with self.assertRaisesRegex(KeyError, "allocations"):
            dpsight.open(STORE).arrow("alocations")


if __name__ == "__main__":
    unittest.main()
