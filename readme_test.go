package pmksched

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
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
