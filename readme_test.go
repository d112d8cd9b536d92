package pmksched

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/versions"
)

// documents returns the text of README.md, CONTRIBUTING.md and docs/*.md by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("list docs/*.md: %v, %d files", err, len(paths))
	}
	texts := map[string]string{}
	for _, path := range append(paths, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// makeTargets returns the targets of the Makefile.
func makeTargets(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY: (\S+)$`).FindAllStringSubmatch(string(makefile), -1) {
		names = append(names, found[1])
	}
	return names
}

func TestDocumentsNameExistingMakeTargets(t *testing.T) {
	targets := makeTargets(t)
	for path, text := range documents(t) {
		for _, found := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if !slices.Contains(targets, found[1]) {
				t.Errorf("%s names `make %s`, which the Makefile does not have", path, found[1])
			}
		}
	}
}

// CI runs the commands of the README's section "Try it" in their order, in one clone.
func TestCIRunsTheCommandsOfTheREADME(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(documents(t)["README.md"], "\n## Try it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var readme []string
	for _, found := range regexp.MustCompile("(?m)(?:`|^)(make [a-z]+)(?:`|$)").FindAllStringSubmatch(section, -1) {
		readme = append(readme, found[1])
	}
	ci := regexp.MustCompile(`(?m)^make [a-z]+$`).FindAllString(string(script), -1)
	if diff := cmp.Diff([]string{"make demo", "make test"}, readme); diff != "" {
		t.Errorf("README.md (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(readme, ci); diff != "" {
		t.Errorf(".ci/run (-README.md +.ci/run):\n%s", diff)
	}
}

func TestTablesHaveNoRowTwice(t *testing.T) {
	for path, text := range documents(t) {
		seen := map[string]bool{} // first cells of the current table
		for line := range strings.Lines(text) {
			cells := strings.Split(line, "|")
			if !strings.HasPrefix(line, "|") || len(cells) < 3 {
				clear(seen)
				continue
			}
			name := strings.TrimSpace(cells[1])
			if seen[name] && name != "" {
				t.Errorf("%s: two rows of a table begin with %s", path, name)
			}
			seen[name] = true
		}
	}
}

func TestLinksInDocumentsResolve(t *testing.T) {
	texts := documents(t)
	for path, text := range texts {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, link[1], err)
			} else if anchor != "" && !anchors(texts[target])[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", path, link[1], target)
			}
		}
	}
}

// anchors returns the anchors of the headings in a Markdown text, as they are rendered on GitHub.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		anchor := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		found[regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(anchor, "")] = true
	}
	return found
}

// docs/releases.md lists exactly the releases that are tested, in the same order.
func TestDocumentedReleasesAreTheTestedOnes(t *testing.T) {
	var shown, tested []string
	for _, row := range regexp.MustCompile(`(?m)^\| (v1\.\S+) \|`).FindAllStringSubmatch(documents(t)["docs/releases.md"],
		-1) {
		shown = append(shown, row[1])
	}
	for _, release := range versions.Releases() {
		tested = append(tested, release.String())
	}
	if diff := cmp.Diff(tested, shown); diff != "" {
		t.Errorf("docs/releases.md differs from versions/releases.txt (make test-matrix writes it):\n%s", diff)
	}
}
