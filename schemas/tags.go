package schemas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// TagsFile is the name of the file of a run's tags in its folder. A run without tags has no such file.
const TagsFile = "tags.json"

// TagsSchema is the version that this package writes.
const TagsSchema = "dpsight.tags/1"

// Tags (tags.json) has the words that a user gave to a run. Tags are not part of the recording, and no figure depends
// on them.
type Tags struct {
	Schema string   `json:"schema"`
	Tags   []string `json:"tags"` // the tags, sorted, each once
}

// tagForm matches the words that a --where condition can contain without quotation marks.
var tagForm = regexp.MustCompile(`^[\p{L}\p{N}_.+/-]+$`)

// CheckTag returns an error for a tag that a --where condition could not contain without quotation marks.
func CheckTag(tag string) error {
	if !tagForm.MatchString(tag) || slices.Contains([]string{"and", "or", "not"}, tag) {
		return WithHint(fmt.Errorf("tag %q is no word of letters, digits and _.+/-", tag),
			"as in dpsight runs tag ghost keep")
	}
	return nil
}

// ReadTags returns the tags of a run folder, or none if the folder has no file of tags.
func ReadTags(dir string) ([]string, error) {
	var t Tags
	err := ReadDocument(filepath.Join(dir, TagsFile), TagsSchema, &t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return t.Tags, err
}

// ChangeTags adds and removes tags of a run, and reports whether the tags changed.
func ChangeTags(dir string, add, remove []string) (changed bool, err error) {
	lock, err := LockPath(dir)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	had, err := ReadTags(dir)
	if err != nil {
		return false, err
	}
	tags := slices.DeleteFunc(slices.Concat(had, add), func(t string) bool { return slices.Contains(remove, t) })
	slices.Sort(tags)
	tags = slices.Compact(tags)
	switch {
	case slices.Equal(tags, had):
		return false, nil
	case len(tags) == 0:
		return true, os.Remove(filepath.Join(dir, TagsFile))
	}
	return true, WriteDocument(filepath.Join(dir, TagsFile), &Tags{Schema: TagsSchema, Tags: tags})
}
