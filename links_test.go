package dpsight_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inCode    = regexp.MustCompile("`[^`\n]*`")
	linkTo    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	namedID   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	markedUp  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	elsewhere = regexp.MustCompile(`^[a-z]+:`) // https:, mailto:
	docNamed  = regexp.MustCompile(`\bdocs/[\w/-]+\.(?:md|png|svg)\b`)
)

// anchors returns the anchors of a page. The anchors of a page are the anchors of its headings, as GitHub and the site
// name them, and the anchors that the page sets itself.
func anchors(text string) map[string]bool {
	text = fenced.ReplaceAllString(text, "")
	all := map[string]bool{}
	for _, m := range namedID.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(markedUp.ReplaceAllString(m[1], "$1")) {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			case r == ' ':
				b.WriteByte('-')
			}
		}
		all[b.String()] = true
	}
	return all
}

// brokenLinks returns the links of a page that lead to no file, or to no anchor in the file. brokenLinks also returns
// the number of links that it checked.
func brokenLinks(name, text string, read func(string) (string, error)) (broken []string, looked int) {
	prose := inCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), "`code`")
	for _, m := range linkTo.FindAllStringSubmatch(prose, -1) {
		if elsewhere.MatchString(m[1]) {
			continue
		}
		looked++
		file, anchor, _ := strings.Cut(m[1], "#")
		target := name
		if file != "" {
			target = path.Join(path.Dir(name), file)
		}
		there, err := read(target)
		if err != nil || anchor != "" && path.Ext(target) == ".md" && !anchors(there)[anchor] {
			broken = append(broken, m[1])
		}
	}
	return broken, looked
}

// TestLinks checks that every relative link of every page leads to a file, and to an anchor in the file. TestLinks does
// not follow links to other sites. TestLinks also checks that the pages of docs that sources name exist.
func TestLinks(t *testing.T) {
	read := func(name string) (string, error) {
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			return "", nil
		}
		b, err := os.ReadFile(name)
		return string(b), err
	}
	pages, links, named := 0, 0, 0
	for _, name := range tracked(t) {
		name = filepath.ToSlash(name)
		ext := path.Ext(name)
		if strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		switch ext {
		case ".md":
			pages++
			text, err := read(name)
			if err != nil {
				t.Fatal(err)
			}
			broken, looked := brokenLinks(name, text, read)
			links += looked
			for _, link := range broken {
				t.Errorf("%s: nothing is where %s leads", name, link)
			}
		case ".txt", ".go", ".py", ".yml":
			if strings.HasPrefix(name, "examples/accuracy/") {
				continue
			}
			text, err := read(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, page := range docNamed.FindAllString(text, -1) {
				named++
				if _, err := os.Stat(page); err != nil {
					t.Errorf("%s names %s, which is not there", name, page)
				}
			}
		}
	}
	if pages < 30 || links < 200 || named < 30 {
		t.Errorf("%d pages with %d links, %d pages named: the test looks in the wrong place", pages, links, named)
	}
}

func TestBrokenLinks(t *testing.T) {
	files := map[string]string{"docs/a.md": "# One `two`, *three*\n## 第一 步\n<a id=\"x-y\"></a>\n```\n# no heading\n```\n",
		"README.md": ""}
	read := func(name string) (string, error) {
		if text, ok := files[name]; ok {
			return text, nil
		}
		return "", os.ErrNotExist
	}
	for link, want := range map[string]int{"a.md": 0, "../README.md": 0, "a.md#one-two-three": 0, "a.md#第一-步": 0,
		"a.md#x-y": 0, "#here": 0, "https://example.org/no": 0, "b.md": 1, "a.md#no-heading": 1, "#nowhere": 1,
		"../docs/README.md": 1} {
		broken, looked := brokenLinks("docs/c.md", "# Here\n[text]("+link+") `[code](gone.md)`\n", func(name string) (string,
			error) {
			if name == "docs/c.md" {
				return "# Here", nil
			}
			return read(name)
		})
		if len(broken) != want || looked > 1 {
			t.Errorf("%s: %v of %d", link, broken, looked)
		}
	}
}
