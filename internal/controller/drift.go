package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// maxDrift bounds the objects and fields that a condition names.
const maxDrift = 5

// drift returns how the scheduler's objects differ from its deployed revision, or "".
func (u *run) drift(ctx context.Context) (string, error) {
	revisions, err := u.apply.Revisions(ctx, u.object.Namespace, u.object.Name)
	if err != nil {
		return "", err
	}
	last := apply.LastDeployed(revisions)
	if last == nil {
		return "the deployed revision is gone", nil
	}
	comparisons, err := u.apply.Compare(ctx, last.Objects)
	if err != nil {
		return "", err
	}
	var list []string
	for _, c := range comparisons {
		switch {
		case c.Err != nil:
			return "", fmt.Errorf("compare %s: %w", c.Object, c.Err)
		case c.Foreign:
			list = append(list, c.Object+" is not managed by pmk-sched")
		case c.Action == apply.Unchanged:
		case c.Live == nil:
			list = append(list, c.Object+" is missing")
		default:
			fields := health.CompareFields(c.Live, c.Applied)
			if len(fields) > 0 {
				list = append(list, c.Object+" "+fields[0].String())
			}
		}
	}
	if len(list) > maxDrift {
		list = append(list[:maxDrift], "…")
	}
	return strings.Join(list, "; "), nil
}
