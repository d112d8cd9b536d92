package conversion

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
)

// No plugin runs twice at an extension point in what is deployed: neither in a preset nor in a document that is rendered. Up to
// 1.29.0 it does where several default plugins are enabled again, and then no pod is scheduled.
func TestWhatIsDeployedRunsNothingTwice(t *testing.T) {
	known := read(t)
	for _, release := range releases(t) {
		t.Run(release.String(), func(t *testing.T) {
			c := newComparison(t, release)
			requests := []profiles.Request{}
			for _, preset := range profiles.Presets() {
				requests = append(requests, profiles.Request{Preset: preset.Name})
			}
			for _, d := range known {
				if d.ReadBy(release, c.scheduler.Rules) {
					requests = append(requests, profiles.Request{Source: d.Text, SourceName: d.Name})
				}
			}
			for _, request := range requests {
				request.Release, request.SchedulerName, request.LeaderElect = release, "my-scheduler", true
				request.Kubeconfig = schedulers.Kubeconfigs()[0]
				rendered, err := profiles.Render(request)
				if err != nil {
					continue // documents with several profiles, none of which has the name
				}
				effect, err := c.scheduler.Effect(t.Context(), rendered.YAML)
				if err != nil {
					t.Errorf("%s%s: %v", request.Preset, request.SourceName, err)
				} else if len(effect.Twice) > 0 {
					t.Errorf("%s%s: these run twice: %q\n%s", request.Preset, request.SourceName, effect.Twice, rendered.YAML)
				}
			}
		})
	}
}
