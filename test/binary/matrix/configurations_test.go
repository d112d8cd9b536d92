//go:build matrix

package matrix

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
)

// count is how many of how many were accepted.
type count struct{ good, of int }

func (c count) String() string { return fmt.Sprintf("%d/%d", c.good, c.of) }

// presets makes the scheduler read every preset as rendered for it.
func presets(t *testing.T, s *schedulers.Scheduler) count {
	t.Helper()
	c := count{of: len(profiles.Presets())}
	for _, preset := range profiles.Presets() {
		rendered, err := profiles.Render(profiles.Request{
			Release: s.Release, SchedulerName: "my-scheduler", Kubeconfig: schedulers.Kubeconfigs()[0], LeaderElect: true,
			Preset: preset.Name,
		})
		if err == nil {
			_, err = s.Read(t.Context(), rendered.YAML)
		}
		if err != nil {
			t.Errorf("preset %s: %v", preset.Name, err)
			continue
		}
		c.good++
	}
	return c
}

// converted makes the scheduler read every converted document, and counts the documents with
// losses.
func converted(t *testing.T, s *schedulers.Scheduler, known []documents.Document) (c count, losses int) {
	t.Helper()
	var good, lost atomic.Int32
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, d := range known {
		group.Go(func() error {
			request := profiles.ConvertRequest{Release: s.Release, Source: d.Text, SourceName: d.Name}
			result, err := profiles.Convert(request)
			if err != nil && d.Lossy(api(s), s.Release) {
				request.Lossy = true
				result, err = profiles.Convert(request)
				lost.Add(1)
			}
			if err == nil {
				_, err = s.Read(ctx, result.YAML, result.Args...)
			}
			if err != nil {
				t.Errorf("document %s: %v", d.Name, err)
				return nil
			}
			good.Add(1)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	return count{good: int(good.Load()), of: len(known)}, int(lost.Load())
}

// api is the config API that is written for the release unless another one is asked for.
func api(s *schedulers.Scheduler) string {
	return s.Rules.Render[len("kubescheduler.config.k8s.io/"):]
}

// configAPIs makes the scheduler read an empty configuration of each config API: it accepts only
// the config APIs in package versions.
func configAPIs(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	for _, name := range []string{"v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3", "v1", "v2"} {
		config := "apiVersion: kubescheduler.config.k8s.io/" + name + "\nkind: KubeSchedulerConfiguration\n"
		if !slices.Contains(documents.APIs(s.Rules), name) {
			if err := refused(t.Context(), s, config, "is registered for version"); err != nil {
				t.Errorf("config API %s, which versions does not name: %v", name, err)
			}
			continue
		}
		if _, err := s.Read(t.Context(), []byte(config)); err != nil {
			t.Errorf("config API %s, which versions names: %v", name, err)
		}
	}
}
