package phantom

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
)

// neededSymbols returns, sorted, the CUDA functions that torch's libraries need from other libraries.
func neededSymbols(libraries []string) (names []string, err error) {
	for _, library := range libraries {
		found, err := undefinedSymbols(library)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// undefinedSymbols returns the CUDA functions that a shared library needs from other libraries.
func undefinedSymbols(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the symbols of %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.DynamicSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the symbols of %s: %w", path, err)
	}
	var names []string
	for _, symbol := range symbols {
		if symbol.Section == elf.SHN_UNDEF && (isRuntimeSymbol(symbol.Name) || isDriverSymbol(symbol.Name)) {
			names = append(names, symbol.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// definedSymbols adds the global functions of an object file to the map into.
func definedSymbols(path string, into map[string]bool) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the symbols of %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	if err != nil {
		return fmt.Errorf("cannot read the symbols of %s: %w", path, err)
	}
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF && elf.ST_BIND(symbol.Info) == elf.STB_GLOBAL {
			into[symbol.Name] = true
		}
	}
	return nil
}
