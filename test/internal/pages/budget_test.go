package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A page for a newcomer is read in some minutes.
func TestFirstPagesHaveAtMost80Lines(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(run.Root(), "docs", "start-*.md"))
	if err != nil || len(pages) < 3 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > 80 {
			t.Errorf("%s has %d lines", page, lines)
		}
	}
}
