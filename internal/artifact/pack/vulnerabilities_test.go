package pack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

func TestCalledVulnerabilitiesAreAFailedCheck(t *testing.T) {
	result := newResult("x:v1", &build.Result{
		Info: build.Info{Release: "v1.24.3", Go: "1.26.8", GoNamed: "1.18.3"},
		Vulnerabilities: []build.Vulnerability{
			{ID: "GO-1", Reach: build.ReachImported}, {ID: "GO-2", Reach: build.ReachCalled},
			{ID: "GO-3", Reach: build.ReachUnknown},
		},
	})
	if result.Go != "1.26.8" || result.GoNamed != "1.18.3" {
		t.Errorf("Go: got %s, named %s", result.Go, result.GoNamed)
	}
	var failed *VulnerableError
	if err := result.Vulnerable(); !errors.As(err, &failed) || !failed.CheckFailed() ||
		!strings.HasSuffix(err.Error(), "known vulnerabilities: GO-2") {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "vex.json")
	if err := writeVEX(t.Context(), Request{VEX: file}, result); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "GO-1") || strings.Contains(string(text), "GO-2") ||
		strings.Contains(string(text), "GO-3") || len(result.Written) != 1 {
		t.Errorf("VEX: %s, %v; written %q", text, err, result.Written)
	}
	result.Vulnerabilities = result.Vulnerabilities[:1]
	if err := result.Vulnerable(); err != nil {
		t.Errorf("nothing is called: got %v", err)
	}
}
