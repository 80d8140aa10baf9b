package ingesttest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Text returns all distinct values in the text columns of a table's file, and the file's metadata. Text reads the
// columns from the file and not from the table's schema, where a column might be missing.
func Text(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	table, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return nil, err
	}
	distinct := map[string]bool{}
	for _, entry := range table.Metadata().KeyValueMetadata {
		distinct[entry.Value] = true
	}
	for _, group := range table.RowGroups() {
		for _, chunk := range group.ColumnChunks() {
			if chunk.Type().Kind() == parquet.ByteArray {
				if err := addValues(distinct, chunk); err != nil {
					return nil, err
				}
			}
		}
	}
	return []byte(strings.Join(slices.Sorted(maps.Keys(distinct)), "\n")), nil
}

func addValues(distinct map[string]bool, chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if dictionary := page.Dictionary(); dictionary != nil {
			for i := range dictionary.Len() {
				distinct[string(dictionary.Index(int32(i)).ByteArray())] = true
			}
		} else {
			values := make([]parquet.Value, page.NumValues())
			n, err := page.Values().ReadValues(values)
			if n != len(values) || err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("%d of a page's %d values read: %w", n, len(values), err)
			}
			for _, v := range values {
				distinct[string(v.ByteArray())] = true
			}
		}
		parquet.Release(page)
	}
}
