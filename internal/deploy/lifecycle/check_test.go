package lifecycle

import (
	"context"
	"errors"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// closedRevisions are revisions that cannot be read.
type closedRevisions struct {
	deploy.Cluster
	err error
}

func (c *closedRevisions) Revisions(context.Context, string, string) ([]apply.RevisionInfo, error) {
	return nil, c.err
}

func (c *closedRevisions) LastDeployed(context.Context, string, string) (*apply.Revision, error) {
	return nil, c.err
}

// A user without rights gets all checks: a missing right is one of them.
func TestCheckContinuesWithoutTheRightToReadRevisions(t *testing.T) {
	var warnings []string
	closed := &closedRevisions{err: &kubeapi.ForbiddenError{Doing: "read revisions of scheduler s"}}
	d := deploy.Deps{Cluster: &readableRevisions{Cluster: closed, warn: func(w string) { warnings = append(warnings, w) }}}
	for range 2 {
		if last, err := d.ReadLast(t.Context(), "ns", "s"); last != nil || err != nil {
			t.Errorf("got %v, %v, want no revision", last, err)
		}
		if last, err := d.Cluster.LastDeployed(t.Context(), "ns", "s"); last != nil || err != nil {
			t.Errorf("got %v, %v, want no revision", last, err)
		}
	}
	if len(warnings) != 1 {
		t.Errorf("got warnings %q, want one", warnings)
	}
	closed.err = errors.New("connection refused")
	if _, err := d.ReadLast(t.Context(), "ns", "s"); !errors.Is(err, closed.err) {
		t.Errorf("got %v, want %v", err, closed.err)
	}
}
