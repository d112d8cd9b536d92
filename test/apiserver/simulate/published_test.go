//go:build linux

package simulate

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/published"
)

// The programs of the mirror are those that the other tests run. There is no go command and the
// cache is empty, so nothing can be compiled.
func TestSimulationWithPublishedProgramsCompilesNothing(t *testing.T) {
	t.Parallel()
	names := []string{"kube-apiserver", "kube-scheduler"}
	site, found := published.Compiled(t, apiserver.Release, names...)
	etcd, err := exec.LookPath(programs.Etcd)
	if err != nil {
		t.Fatal(err)
	}

	snapshot := snapshotOf(t, node("one", 4, "", "")+pod("web", "1", "", "", ""))
	cmd := exec.CommandContext(t.Context(), run.Program(t), "--cache-dir", t.TempDir(), "--programs", "published",
		"--kubernetes-registry", site.Registry, "--kubernetes-downloads", site.Downloads,
		"simulate", "pending", "--snapshot", snapshot, "--branch", apiserver.Release, "-o", "json")
	cmd.Env = []string{"PATH=" + strings.TrimSuffix(etcd, "/"+programs.Etcd)}
	result := run.Command(t, cmd).OK(t)
	r := run.Decode[report.Report](t, result.Stdout)
	equal(t, "placements", map[string]string{"web": "one"}, nodesOf(r))
	for i, name := range []string{"kube-scheduler", "kube-apiserver"} {
		line := name + " " + apiserver.Release + " from " + site.Registry + "/" + name + ":" + apiserver.Release + "@sha256:"
		if len(r.Programs) != len(names) || !strings.HasPrefix(r.Programs[i], line) ||
			!strings.Contains(r.Programs[i], found[name].SHA256) {
			t.Errorf("program %d of the report: %q, want %s…", i, r.Programs, line)
			continue
		}
		result.Prints(t, r.Programs[i])
	}
}
