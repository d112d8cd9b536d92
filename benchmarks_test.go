package pmksched

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Figures of the documents have the command that measures them: the benchmarks and packages that it
// names exist.
func TestBenchmarksOfTheDocumentsExist(t *testing.T) {
	command := regexp.MustCompile("go test [^`\\n]*-bench (\\S+)[^`\\n]* (\\./[a-z/]+)")
	function := regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`)
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "scheduler/plugins/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	commands := 0
	for _, document := range documents {
		for _, c := range command.FindAllStringSubmatch(read(t, document), -1) {
			commands++
			name, _, _ := strings.Cut(strings.Trim(c[1], "'"), "/") // without sub-benchmarks
			wanted, found := regexp.MustCompile(name), false
			files, err := filepath.Glob(filepath.Join(c[2], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				for _, f := range function.FindAllStringSubmatch(read(t, file), -1) {
					found = found || wanted.MatchString("Benchmark"+f[1])
				}
			}
			if !found {
				t.Errorf("%s: no benchmark matches: %s", document, c[0])
			}
		}
	}
	if commands == 0 {
		t.Error("the documents have no command with a benchmark")
	}
}

// Each shell block of docs/performance.md is the command of a benchmark.
func TestPerformancePageHasOnlyBenchmarks(t *testing.T) {
	block := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```")
	blocks := block.FindAllStringSubmatch(read(t, "docs/performance.md"), -1)
	for _, b := range blocks {
		if b[1] != "sh" || strings.Count(b[2], "\n") != 1 || !strings.Contains(b[2], "go test -run '^$' -bench ") {
			t.Errorf("a block of docs/performance.md is not one benchmark command:\n%s", b[2])
		}
	}
	if len(blocks) == 0 {
		t.Error("docs/performance.md has no command")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
