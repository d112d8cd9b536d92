//go:build matrix

package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Messages of a scheduler about a plugin that it does not have, and about a plugin that it has and
// refuses in a config API.
const (
	missing       = "does not exist"
	rejectedThere = "was removed in version"
	invalidThere  = "was invalid in version"
)

// plugins enables every in-tree plugin of any release, in each config API that the release reads:
// plugins in package versions are accepted at one extension point at least, unless the config API
// rejects them; all others are rejected.
func plugins(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, api := range documents.APIs(s.Rules) {
		full := "kubescheduler.config.k8s.io/" + api
		for _, name := range append(everyPlugin(t), "NoSuchPlugin") {
			group.Go(func() error {
				err := enabledSomewhere(ctx, s, full, name)
				switch rejected := slices.Contains(s.Rules.RejectedPlugins[full], name); {
				case !slices.Contains(s.Rules.Plugins, name):
					if !said(err, missing, rejectedThere, invalidThere) {
						t.Errorf("plugin %s in %s, which versions does not name: %v", name, api, err)
					}
				case rejected:
					if !said(err, rejectedThere, invalidThere) {
						t.Errorf("plugin %s in %s, rejected according to versions: %v", name, api, err)
					}
				case err != nil:
					t.Errorf("plugin %s in %s, which versions names: %v", name, api, err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// everyPlugin returns the in-tree plugins of all releases.
func everyPlugin(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, release := range versions.Releases() {
		rules, err := versions.Select(release)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules.Plugins...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// enabledSomewhere returns nil if a plugin can be enabled at an extension point, alone there, and
// otherwise the scheduler's error for each extension point.
func enabledSomewhere(ctx context.Context, s *schedulers.Scheduler, api, name string) error {
	points := []string{"filter", "score", "queueSort", "bind", "postFilter"}
	if s.Release.Minor >= 26 { // in v1beta2 and v1beta3 it is accepted and ignored
		points = append(points, "preEnqueue")
	}
	if s.Release.Minor >= 36 {
		points = append(points, "placementGenerate", "placementScore")
	}
	points = append(points, "preFilter", "permit", "preBind")
	var all error
	for _, point := range points {
		config := fmt.Sprintf(`apiVersion: %s
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    %s:
      disabled: [{name: "*"}]
      enabled: [{name: %s}]
%s`, api, point, name, argumentsOf(name, s.Rules.Plugins))
		_, err := s.Read(ctx, []byte(config))
		if err == nil {
			return nil
		}
		all = errors.Join(all, fmt.Errorf("%s: %w", point, err))
		if said(err, missing, rejectedThere, invalidThere) {
			return err
		}
	}
	return all
}

// argumentsOf returns the arguments without which a plugin does not start.
func argumentsOf(name string, there []string) string {
	if name != "RequestedToCapacityRatio" || !slices.Contains(there, name) {
		return ""
	}
	return "  pluginConfig: [{name: RequestedToCapacityRatio, args: {shape: [{utilization: 0, score: 0}]}}]\n"
}
