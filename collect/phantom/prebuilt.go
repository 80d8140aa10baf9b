package phantom

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed prebuilt
var prebuilt embed.FS

// symbolList is the file in an archive that lists the CUDA functions that its libraries provide, one per line.
const symbolList = "symbols"

// versionsIn returns the versions of torch for which there are archives, such as 2.11.0+cu130.
func versionsIn(archives fs.FS) (versions []string) {
	names, err := fs.Glob(archives, "prebuilt/*.zip")
	if err != nil {
		return nil
	}
	for _, name := range names {
		name = strings.TrimSuffix(path.Base(name), ".zip")
		if i := strings.LastIndex(name, "-"); i >= 0 {
			versions = append(versions, name[:i])
		}
	}
	return versions
}

// archiveName returns the name of an archive. An archive's name contains a digest of everything that the libraries are
// compiled from: other sources or other CUDA headers give another name. The name does not depend on the interpreter.
func archiveName(torch torchInstall) (string, error) {
	hash := sha256.New()
	if err := hashSources(hash); err != nil {
		return "", err
	}
	fmt.Fprintf(hash, "%s\n%s\n%d\n", torch.version, torch.cuda, torch.cudart)
	hashStubRules(hash)
	return fmt.Sprintf("%s-%s.zip", torch.version, hex.EncodeToString(hash.Sum(nil))[:20]), nil
}

// unpacking returns a making that unpacks the archive for a torch, if there is one and it provides all functions that
// this torch calls. Two builds of torch may have the same version and call different functions.
func unpacking(archives fs.FS, torch torchInstall) (making, bool, error) {
	name, err := archiveName(torch)
	if err != nil {
		return making{}, false, err
	}
	data, err := fs.ReadFile(archives, path.Join("prebuilt", name))
	if errors.Is(err, fs.ErrNotExist) {
		return making{}, false, nil
	}
	if err != nil {
		return making{}, false, err
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return making{}, false, fmt.Errorf("%s in this build of dpsight: %w", name, err)
	}
	list, err := fs.ReadFile(archive, symbolList)
	if err != nil {
		return making{}, false, fmt.Errorf("%s in this build of dpsight: %w", name, err)
	}
	needed, err := neededSymbols(torch.libraries)
	if err != nil {
		return making{}, false, err
	}
	answered := strings.Fields(string(list))
	for _, symbol := range needed {
		if !slices.Contains(answered, symbol) {
			return making{}, false, nil
		}
	}
	sum := sha256.Sum256(data)
	return making{
		key: "prebuilt\n" + hex.EncodeToString(sum[:]),
		fill: func(_ context.Context, _, out string) error {
			if err := os.CopyFS(out, archive); err != nil {
				return err
			}
			return os.Remove(filepath.Join(out, symbolList))
		},
	}, true, nil
}

// Prebuild compiles the libraries for the torch of an interpreter, as [Build] does, and writes them into a folder as an
// archive that a later build of dpsight can contain. Prebuild returns the archive's path.
func Prebuild(ctx context.Context, options Options, folder string) (string, error) {
	torch, err := locateTorch(ctx, options.Python)
	if err != nil {
		return "", err
	}
	compilers, err := findCompilers(ctx, options)
	if err != nil {
		return "", err
	}
	name, err := archiveName(torch)
	if err != nil {
		return "", err
	}
	needed, err := neededSymbols(torch.libraries)
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "dpsight-prebuild-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	out := filepath.Join(work, "lib")
	if err := compileAll(ctx, work, out, torch, compilers); err != nil {
		return "", err
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, file := range libraryFiles {
		data, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			return "", err
		}
		if err := addFile(archive, file, data); err != nil {
			return "", err
		}
	}
	if err := addFile(archive, symbolList, []byte(strings.Join(needed, "\n")+"\n")); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	return path, os.WriteFile(path, packed.Bytes(), 0o644)
}

// addFile adds a file to an archive without a time, so that the same libraries give the same archive.
func addFile(archive *zip.Writer, name string, data []byte) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(0o755)
	file, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, bytes.NewReader(data))
	return err
}
