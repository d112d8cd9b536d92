package controller

import (
	"context"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
)

// maxDrift bounds the objects and fields that a condition names.
const maxDrift = 5

// drift returns how the scheduler's objects differ from its deployed revision, or "".
func (u *run) drift(ctx context.Context) (string, error) {
	last, err := u.apply.LastDeployed(ctx, u.object.Namespace, u.object.Name)
	if err != nil {
		return "", err
	}
	if last == nil {
		return "the deployed revision is gone", nil
	}
	comparisons, err := u.apply.Compare(ctx, last.Objects)
	if err != nil {
		return "", err
	}
	drift, unread := observe.Drift(comparisons, last.Number)
	if len(unread) > 0 {
		return "", unread[0]
	}
	var list []string
	for _, d := range drift {
		switch {
		case d.Foreign:
			list = append(list, d.Object+" is not managed by pmk-sched")
		case d.Missing:
			list = append(list, d.Object+" is missing")
		default:
			list = append(list, d.Object+" "+d.Fields[0].String())
		}
	}
	if len(list) > maxDrift {
		list = append(list[:maxDrift], "…")
	}
	return strings.Join(list, "; "), nil
}
