package replace

import (
	"context"
	"fmt"
	"reflect"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// LeaveExtender removes the extender from this node's default scheduler: if the scheduler was
// replaced only for the extender, the original is restored byte by byte, otherwise it is replaced
// by one without the extender.
func LeaveExtender(ctx context.Context, d Deps, info *inspect.Info, o Options, name string) error {
	b, err := staticpod.Current(d.Files)
	if b == nil {
		return err // it was restored meanwhile
	}
	former, err := requireRecord(b)
	if err != nil {
		return err
	}
	if former.Request.Spec.Extenders, err = deploy.WithoutExtenders(former.Request, nil, name); err != nil {
		return err
	}
	if len(former.Request.Spec.Extenders) == 0 {
		former.Request.Spec.Extenders = nil
	}
	if reflect.DeepEqual(former.Request.Spec, v1alpha1.CustomSchedulerSpec{}) {
		_, err := Restore(ctx, d, false)
		return err
	}
	o.DropExtenders = []string{name}
	if _, err := Run(ctx, d, info, o); err != nil {
		return fmt.Errorf("remove extender %s from the default scheduler: %w", name, err)
	}
	return nil
}

// withExtender returns the options to add an extender to the current request.
func (o Options) withExtender(entry v1alpha1.Extender) Options {
	at := *entry.Deployed
	at.Added = true
	entry.Deployed = &at
	o.Extenders = []v1alpha1.Extender{entry}
	return o
}
