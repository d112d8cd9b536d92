package handmade_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
)

// A message about the configuration can name a line of the user's file.
func TestLinesOfTheConfigurationAreThoseOfTheSource(t *testing.T) {
	source, err := os.ReadFile("../../../test/testdata/article/manifest-as-printed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, err := handmade.Read("m.yaml", source)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	for i, line := range strings.Split(strings.TrimSpace(string(read.Request.Spec.Configuration.Inline)), "\n") {
		at := read.Places[i+1].Line
		want, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if at == 0 || !strings.Contains(lines[at-1], want) {
			t.Errorf("line %d %q: got line %d", i+1, line, at)
		}
	}
}
