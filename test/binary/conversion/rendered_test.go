package conversion

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
)

// No plugin runs twice at an extension point, neither in a preset nor in a rendered document. Up to
// 1.29.0 a plugin would run twice if several default plugins were enabled again, and then no pod
// would be scheduled.
func TestRenderedConfigurationsRunNoPluginTwice(t *testing.T) {
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
			var names []string
			var texts [][]byte
			for _, request := range requests {
				request.Release, request.SchedulerName, request.LeaderElect = release, "my-scheduler", true
				request.Kubeconfig = schedulers.Kubeconfigs()[0]
				rendered, err := profiles.Render(request)
				if strings.HasSuffix(request.SourceName, "-several-profiles") { // no profile is named my-scheduler
					if err == nil || !strings.Contains(err.Error(), "my-scheduler") {
						t.Errorf("%s is rendered with the error %v", request.SourceName, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s%s: %v", request.Preset, request.SourceName, err)
					continue
				}
				names, texts = append(names, request.Preset+request.SourceName), append(texts, rendered.YAML)
			}
			outcomes, err := c.scheduler.Effects(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range outcomes {
				if o.Err != nil {
					t.Errorf("%s: %v", names[i], o.Err)
				} else if len(o.Effect.Twice) > 0 {
					t.Errorf("%s: these run twice: %q\n%s", names[i], o.Effect.Twice, texts[i])
				}
			}
		})
	}
}
