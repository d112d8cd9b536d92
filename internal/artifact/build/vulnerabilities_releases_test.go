//go:build releases

package build

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The real govulncheck, from the module proxy of the machine, checks the fake release.
func TestVulnerabilitiesByTheRealGovulncheck(t *testing.T) {
	p := newProxy(t)
	p.vulnerableRelease(t)
	o := p.options(t)
	real, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, variable := range o.Env {
		if strings.HasPrefix(variable, "GOPROXY=") {
			o.Env[i] += "," + strings.TrimSpace(string(real))
		}
	}
	o.Vulnerabilities = vulnerabilityDatabase(t)

	result := mustRun(t, o)

	if diff := cmp.Diff(madeUpVulnerabilities(), result.Vulnerabilities); diff != "" {
		t.Errorf("vulnerabilities (-want +got):\n%s", diff)
	}
}

// vulnerableRelease serves a release that calls one function of example.com/third.
func (p *proxy) vulnerableRelease(t *testing.T) {
	t.Helper()
	p.add(t, "example.com/third", "v1.1.9", map[string]string{
		"go.mod": "module example.com/third\n",
		"third.go": "package third\n\nconst Name = \"third v1.1.9\"\n\nfunc Called() string { return Name }\n\n" +
			"func NotCalled() {}\n",
		"other/other.go": "package other\n\nfunc Other() {}\n",
	})
	files := releaseFiles(t, nil)[kubernetes]
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/go.mod": strings.ReplaceAll(files["go.mod"], "third v1.1.0", "third v1.1.9"),
		"k8s.io/kubernetes/cmd/kube-scheduler/app/server.go": strings.ReplaceAll(files["cmd/kube-scheduler/app/server.go"],
			"third.Name", "third.Called()"),
	})
}

func madeUpVulnerabilities() []Vulnerability {
	const module, version = "example.com/third", "v1.1.9"
	return []Vulnerability{
		{ID: "GO-2026-0001", Aliases: []string{"CVE-2026-0001"}, Summary: "Called in example.com/third",
			Module: module, Version: version, Fixed: "v1.2.0", Reach: ReachCalled,
			Path: []string{"pmk-sched.io/build/cmd/kube-scheduler.main",
				"k8s.io/kubernetes/cmd/kube-scheduler/app.NewSchedulerCommand", "example.com/third.Called"}},
		{ID: "GO-2026-0002", Summary: "Imported in example.com/third", Module: module, Version: version,
			Fixed: "v1.2.0", Reach: ReachImported},
		{ID: "GO-2026-0003", Summary: "Required in example.com/third", Module: module, Version: version,
			Reach: ReachRequired},
	}
}
