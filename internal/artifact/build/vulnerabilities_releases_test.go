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
