package deploy

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// The pods would not start: nothing is applied.
func TestDeployRefusesAnImageWithoutTheProgramOfItsPods(t *testing.T) {
	r := &recorder{}
	d := deps(r)
	d.Binary = func(context.Context, *Plan, string) (configcheck.Binary, error) {
		return configcheck.Binary{Path: "/program", Missing: "/usr/local/bin/kube-scheduler"}, nil
	}
	_, err := Deploy(t.Context(), d, testPlan(t), RunOptions{})
	if !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "image localhost/my-scheduler:v1 has no /usr/local/bin/kube-scheduler") {
		t.Errorf("got %v", err)
	}
	if called := strings.Join(r.calls, " "); strings.Contains(called, "apply") {
		t.Errorf("it was applied: %s", called)
	}
}
