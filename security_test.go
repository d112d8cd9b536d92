package pmksched

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each row of the table in docs/security.md names the tests that hold it, and each of them exists.
func TestEveryRowOfTheSecurityTableNamesItsTest(t *testing.T) {
	text := read(t, "docs/security.md")
	_, section, found := strings.Cut(text, "\n## Who can write what\n")
	if !found {
		t.Fatal("docs/security.md has no section: Who can write what")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	tests, name := testFunctions(t), regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| who ") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		named := name.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(named) == 0 {
			t.Errorf("no test in the row: %s", line)
		}
		for _, n := range named {
			if !tests[n[1]] {
				t.Errorf("there is no test %s: %s", n[1], line)
			}
		}
	}
	if rows == 0 {
		t.Error("the table has no rows")
	}
}

// testFunctions returns the names of all tests and fuzz targets of the repository.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	function, names := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range function.FindAllSubmatch(source, -1) {
			names[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
