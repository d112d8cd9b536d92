package pmksched

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

func TestDocumentsNameExistingMakeTargets(t *testing.T) {
	checked := map[string]bool{}
	for path, text := range documents(t) {
		for _, found := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if checked[found[1]] {
				continue
			}
			checked[found[1]] = true
			if out, err := exec.Command("make", "-n", found[1]).CombinedOutput(); err != nil {
				t.Errorf("%s names `make %s`: %v\n%s", path, found[1], err, out)
			}
		}
	}
}

// CI installs the packages that the tests need and runs the tests, nothing else.
func TestCIRunsMakeTest(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "set ") && !strings.HasPrefix(line, "cd ") {
			commands = append(commands, line)
		}
	}
	if diff := cmp.Diff([]string{"hack/deps.sh", "make test"}, commands); diff != "" {
		t.Errorf(".ci/run (-want +got):\n%s", diff)
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
	for _, row := range regexp.MustCompile(`(?m)^\| (v1\.\S+) \|`).FindAllStringSubmatch(documents(t)["docs/releases.md"], -1) {
		shown = append(shown, row[1])
	}
	for _, release := range versions.Releases() {
		tested = append(tested, release.String())
	}
	if diff := cmp.Diff(tested, shown); diff != "" {
		t.Errorf("docs/releases.md differs from versions/releases.txt (make test-matrix writes it):\n%s", diff)
	}
}
