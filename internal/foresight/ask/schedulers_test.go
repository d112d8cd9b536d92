package ask

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func podOf(scheduler string) map[string]any {
	spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i"}}}
	if scheduler != "" {
		spec["schedulerName"] = scheduler
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p-" + scheduler},
		"spec": spec}
}

func TestQuestionsGoToTheSchedulerThatTheirPodsName(t *testing.T) {
	standard := &engine{profiles: []string{"default-scheduler"}}
	packer := &engine{profiles: []string{"packer", "packer-gpu"}}
	noRoutes := func(context.Context) (func(*corev1.Pod) (string, error), error) {
		return func(*corev1.Pod) (string, error) { return "", nil }, nil
	}
	absent := map[string]error{"lost": errors.New("no program")}
	several := &Schedulers{engines: []*engine{standard, packer}, absent: absent, routes: noRoutes,
		places: make(chan struct{}, 1)}
	busy := &Schedulers{engines: several.engines, routes: noRoutes, places: make(chan struct{})}
	one := &Schedulers{engines: []*engine{packer}}
	for name, tc := range map[string]struct {
		of        *Schedulers
		scheduler string
		pods      []string
		want      *engine
		fail      string
		invalid   bool
	}{
		"no name":             {of: several, pods: []string{""}, want: standard},
		"a name":              {of: several, pods: []string{"packer"}, want: packer},
		"two profiles of one": {of: several, pods: []string{"packer", "packer-gpu"}, want: packer},
		"two schedulers":      {of: several, pods: []string{"packer", ""}, fail: "several schedulers: default-scheduler, packer", invalid: true},
		"two, and an answer":  {of: several, pods: []string{"packer", ""}, scheduler: "packer", want: packer},
		"an unknown name":     {of: several, pods: []string{"other"}, fail: `no scheduler "other" answers here`, invalid: true},
		"one that is absent":  {of: several, pods: []string{"lost"}, fail: "lost does not answer here: no program"},
		"the only one":        {of: one, pods: []string{"other", ""}, want: packer},
		"the only one, asked": {of: one, scheduler: "packer-gpu", pods: []string{""}, want: packer},
		"too many at once":    {of: busy, pods: []string{""}, fail: ErrBusy.Error()},
		"busy, but a name":    {of: busy, scheduler: "packer", pods: []string{""}, want: packer},
		"not the only one":    {of: one, scheduler: "other", pods: []string{""}, fail: `no scheduler "other" answers here`, invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := Question{Scheduler: tc.scheduler}
			for _, scheduler := range tc.pods {
				q.Manifests = append(q.Manifests, podOf(scheduler))
			}
			asked, err := q.read()
			if err != nil {
				t.Fatal(err)
			}
			got, err := tc.of.choose(t.Context(), q, &asked)
			if tc.fail == "" && (err != nil || got != tc.want) {
				t.Errorf("got %v, %v", got, err)
			}
			if tc.fail != "" && (err == nil || !strings.Contains(err.Error(), tc.fail) || problem.IsInvalid(err) != tc.invalid) {
				t.Errorf("got %v, want %q", err, tc.fail)
			}
		})
	}
}
