package documents

import (
	"bytes"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestVulnerabilitiesThatAreNotCalledAreNotAffected(t *testing.T) {
	list := []build.Vulnerability{
		{ID: "GO-2026-0001", Module: "example.com/a", Version: "v1.0.0", Reach: build.ReachCalled,
			Path: []string{"main.main"}},
		{ID: "GO-2026-0002", Aliases: []string{"CVE-2026-2", "GHSA-aaaa-bbbb-cccc"}, Summary: "a crash",
			Module: "example.com/a", Version: "v1.0.0+incompatible", Fixed: "v1.1.0", Reach: build.ReachImported},
		{ID: "GO-2026-0003", Module: "example.com/a", Version: "v1.0.0+incompatible", Reach: build.ReachRequired},
		{ID: "GO-2026-0004", Module: "stdlib", Version: "v1.18.10", Fixed: "v1.20.0", Reach: build.ReachImported},
		{ID: "GO-2026-0005", Module: "stdlib", Version: "v1.18.10", Reach: build.ReachUnknown},
	}
	for file, list := range map[string][]build.Vulnerability{"vex.json": list, "none.json": nil} {
		var got bytes.Buffer
		if err := WriteVEX(&got, "kube-scheduler", "v1.24.3", list); err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, "testdata/"+file, got.String())
	}
}
