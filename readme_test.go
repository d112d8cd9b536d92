package pmksched

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Every make target that the README or the contributor's guide names exists.
func TestTargetsNamedInTheDocumentsExist(t *testing.T) {
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)").FindAllStringSubmatch(string(text), -1) {
			if out, err := exec.Command("make", "-n", found[1]).CombinedOutput(); err != nil {
				t.Errorf("%s names `make %s`: %v\n%s", file, found[1], err, out)
			}
		}
	}
}

// CI runs the README's test command, not another one.
func TestCIRunsTheTestCommandOfTheREADME(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "\nmake test\n") {
		t.Error(".ci/run does not run `make test`")
	}
}

// Documents link only to files that are there.
func TestLinksInTheDocumentsLeadSomewhere(t *testing.T) {
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(link[1]); err != nil {
				t.Errorf("%s links to %s: %v", file, link[1], err)
			}
		}
	}
}

// The README's table of releases has the releases that are tested, no other, in their order.
func TestReleasesOfTheREADMEAreThoseThatAreTested(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown, tested []string
	for _, row := range regexp.MustCompile(`(?m)^\| (v1\.\S+) \|`).FindAllStringSubmatch(string(text), -1) {
		shown = append(shown, row[1])
	}
	for _, release := range versions.Releases() {
		tested = append(tested, release.String())
	}
	if diff := cmp.Diff(tested, shown); diff != "" {
		t.Errorf("the README's table of releases is not versions/releases.txt (make test-matrix shows it):\n%s", diff)
	}
}
