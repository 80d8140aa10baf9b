package schemas_test

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// The digest of a run's code depends on the names and contents of its files. The digest does not depend on the process
// that reported the files, their order or their folders.
func TestCodeDigest(t *testing.T) {
	file := func(module, path, hash string) schemas.CodeFile {
		if hash == "" {
			return schemas.CodeFile{Module: module, File: path, Changed: true}
		}
		return schemas.CodeFile{Module: module, File: path, SHA256: &hash}
	}
	main, layers := file(schemas.MainModule, "train.py", "aa"), file("layers", "layers.py", "bb")
	code := schemas.NewCode([]schemas.CodeFile{main, layers})
	for what, same := range map[string]*schemas.Code{
		"two ranks":       schemas.NewCode([]schemas.CodeFile{main, layers}, []schemas.CodeFile{layers, main}),
		"parts":           schemas.NewCode([]schemas.CodeFile{layers}, nil, []schemas.CodeFile{main}),
		"another folder":  schemas.NewCode([]schemas.CodeFile{main, file("layers", "src/layers.py", "bb")}),
		"by another path": schemas.NewCode([]schemas.CodeFile{layers, file(schemas.MainModule, "x/train.py", "aa")}),
	} {
		if *same.Digest != *code.Digest || same.Files[0].Module != schemas.MainModule {
			t.Errorf("%s: %+v with digest %s, want %s", what, same.Files, *same.Digest, *code.Digest)
		}
	}
	for what, other := range map[string]*schemas.Code{
		"script": schemas.NewCode([]schemas.CodeFile{file(schemas.MainModule, "train.py", "ab"), layers}),
		"module": schemas.NewCode([]schemas.CodeFile{main, file("layers", "layers.py", "ba")}),
		"name":   schemas.NewCode([]schemas.CodeFile{main, file("layer", "layers.py", "bb")}),
		"more":   schemas.NewCode([]schemas.CodeFile{main, layers, file("more", "more.py", "cc")}),
	} {
		if *other.Digest == *code.Digest {
			t.Errorf("%s: the digest is the same", what)
		}
	}
	if c := schemas.NewCode([]schemas.CodeFile{main, file("layers", "layers.py", "")}); c.Digest != nil {
		t.Errorf("a digest of what is not known: %s", *c.Digest)
	}
	if c := schemas.NewCode(nil, []schemas.CodeFile{}); c != nil {
		t.Errorf("code of nothing: %+v", c)
	}
}
