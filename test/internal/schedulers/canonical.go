package schedulers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// printed is the output of the program effect for one configuration.
type printed struct {
	Configuration map[string]any                  `json:"configuration"`
	Running       map[string]map[string]pluginSet `json:"running"`
	Error         string                          `json:"error"`
}

type pluginSet struct{ Enabled []plugin }

type plugin struct {
	Name   string
	Weight int
}

// canonical makes the same text of two descriptions of the same effect.
func (s *Scheduler) canonical(text string) (Effect, error) {
	var p printed
	if err := json.Unmarshal([]byte(s.restore(text)), &p); err != nil {
		return Effect{}, fmt.Errorf("read what effect printed: %w", err)
	}
	var e Effect
	if p.Error != "" {
		return e, errors.New(p.Error)
	}
	profiles, _ := p.Configuration["Profiles"].([]any)
	for _, element := range profiles {
		profile := element.(map[string]any)
		name, _ := profile["SchedulerName"].(string)
		running := p.Running[name]
		for point, set := range running {
			for _, plugin := range twice(set) {
				e.Twice = append(e.Twice, fmt.Sprintf("%s, %s: %s", name, point, plugin))
			}
		}
		// These are the sets as written. The resulting plugins are in running.
		delete(profile, "Plugins")
		settleScoring(profile, running)
		onlyRunning(profile, running)
		if profile["PercentageOfNodesToScore"] == nil {
			profile["PercentageOfNodesToScore"] = p.Configuration["PercentageOfNodesToScore"]
		}
		profile["Running"] = points(running)
	}
	// Each profile now has a value, its own or the common one.
	delete(p.Configuration, "PercentageOfNodesToScore")
	if !s.Rules.InsecurePort {
		// Nothing listens there any more, although v1beta2 still defines the fields.
		delete(p.Configuration, "HealthzBindAddress")
		delete(p.Configuration, "MetricsBindAddress")
	}
	canonical, err := json.MarshalIndent(p.Configuration, "", "  ")
	e.Text = string(canonical)
	slices.Sort(e.Twice)
	return e, err
}

func twice(set pluginSet) []string {
	var seen, again []string
	for _, p := range set.Enabled {
		if slices.Contains(seen, p.Name) && !slices.Contains(again, p.Name) {
			again = append(again, p.Name)
		}
		seen = append(seen, p.Name)
	}
	return again
}

// points returns the plugins of each extension point. Where every plugin is asked and the answers
// are put together, their order does not matter; it does where the first one that takes the pod
// ends it.
func points(running map[string]pluginSet) map[string]any {
	all := map[string]any{}
	for point, set := range running {
		var names []string
		for _, p := range set.Enabled {
			switch {
			case point == "Score" && p.Name == "VolumeBinding":
				// Enabled by multiPoint. It gives every node 0 unless a feature gate, off in every
				// release, makes it score
				// (pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Score).
				continue
			case point == "Score":
				names = append(names, fmt.Sprintf("%s %d", p.Name, p.Weight))
			default:
				names = append(names, p.Name)
			}
		}
		if point != "Bind" && point != "PostFilter" {
			slices.Sort(names)
			names = slices.Compact(names)
		}
		if len(names) > 0 {
			all[point] = names
		}
	}
	return all
}

// onlyRunning leaves out the arguments of plugins that do not run: multiPoint creates their
// arguments even if every extension point disables them.
func onlyRunning(profile map[string]any, running map[string]pluginSet) {
	configs, _ := profile["PluginConfig"].([]any)
	kept := []any{}
	for _, c := range configs {
		name, _ := c.(map[string]any)["Name"].(string)
		for point, set := range running {
			scoresNothing := point == "Score" && name == "VolumeBinding"
			if !scoresNothing && slices.ContainsFunc(set.Enabled, func(p plugin) bool { return p.Name == name }) {
				kept = append(kept, c)
				break
			}
		}
	}
	profile["PluginConfig"] = kept
}
