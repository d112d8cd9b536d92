package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	// mostResources limits the extended resources with a weight in the search.
	mostResources = 3
	// fewNodes is the number of nodes up to which a scheduler examines every node
	// (minFeasibleNodesToFind in pkg/scheduler/schedule_one.go).
	fewNodes = 100
)

// space are the configurations to choose from.
type space struct {
	scheduler pack.Scheduler
	compiled  kubescheduler.Scheduler
	today     *profiles.Tunable
	presets   []named
	settings  []Setting
}

type named struct {
	name string
	*profiles.Tunable
}

func isExtended(resource string) bool {
	domain, _, ok := strings.Cut(resource, "/")
	return ok && domain != "kubernetes.io"
}

func (x *space) tunable(r profiles.Request) (*profiles.Tunable, error) {
	r.Release, r.SchedulerName, r.Enable = x.compiled.Release, x.compiled.Request.Name, x.compiled.Plugins
	return profiles.NewTunable(r)
}

// addSettings adds the settings that can matter for the snapshots.
func (x *space) addSettings(nodes int, images bool, resources []string) {
	x.add(profiles.SettingStrategy, false, "LeastAllocated", profiles.StrategyRatio+"50", profiles.StrategyRatio+"70",
		profiles.StrategyRatio+"85", "MostAllocated")
	x.add(profiles.PrefixResource+"cpu", false, "1", "2", "4", "8")
	x.add(profiles.PrefixResource+"memory", false, "0", "1", "2", "4", "8")
	for _, name := range resources[:min(len(resources), mostResources)] {
		x.add(profiles.PrefixResource+name, false, "0", "1", "2", "4", "8")
	}
	for _, plugin := range x.today.PolicyPlugins() {
		if plugin == "ImageLocality" && !images {
			continue
		}
		x.add(profiles.PrefixWeight+plugin, false, "0", "1", "2", "3", "5", "10")
	}
	x.add(profiles.SettingConstraints, true, profiles.ConstraintsSystem, profiles.ConstraintsNone,
		profiles.ConstraintsEven)
	if nodes > fewNodes {
		x.add(profiles.SettingPercentage, false, "0", "2", "5", "10", "30", "100")
	}
	if x.today.HasNUMA() {
		x.add(profiles.SettingNUMA, true, "LeastAllocated", "MostAllocated")
	}
}

// add adds a setting whose values include today's. Numbers are ordered.
func (x *space) add(name string, unordered bool, values ...string) {
	if now := x.today.Get(name); !slices.Contains(values, now) {
		values = append(values, now)
		slices.SortStableFunc(values, func(a, b string) int {
			m, err := strconv.Atoi(a)
			n, other := strconv.Atoi(b)
			if err != nil || other != nil {
				return 0
			}
			return cmp.Compare(m, n)
		})
	}
	x.settings = append(x.settings, Setting{Name: name, Values: values, Unordered: unordered})
}

// given returns today's configuration and the presets.
func (x *space) given() []Candidate {
	all := []Candidate{{Name: Today, Levels: x.levels(x.today)}}
	for _, preset := range x.presets {
		all = append(all, Candidate{Name: preset.name, Levels: x.levels(preset.Tunable)})
	}
	return all
}

// levels returns a configuration's levels, or nil if it has other values.
func (x *space) levels(t *profiles.Tunable) []int {
	levels := make([]int, len(x.settings))
	for i, setting := range x.settings {
		if levels[i] = slices.Index(setting.Values, t.Get(setting.Name)); levels[i] < 0 {
			return nil
		}
	}
	return levels
}

// configuration returns a candidate's configuration: a given one, or today's with changes.
func (x *space) configuration(c Candidate) *profiles.Tunable {
	if i := slices.IndexFunc(x.presets, func(n named) bool { return n.name == c.Name }); i >= 0 {
		return x.presets[i].Tunable
	}
	t := x.today.Copy()
	if c.Name != Today {
		for i, setting := range x.settings {
			t.Set(setting.Name, setting.Values[c.Levels[i]])
		}
	}
	return t
}

// firstEqual returns the index of the first candidate with the same configuration as each
// candidate: today's is often a preset.
func (x *space) firstEqual(all []Candidate) ([]int, error) {
	texts, first := make([]string, len(all)), make([]int, len(all))
	for i, c := range all {
		text, err := x.configuration(c).YAML()
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
		first[i] = slices.Index(texts, texts[i])
	}
	return first, nil
}

// describe adds a point's configuration in all its forms.
func (x *space) describe(point *Point, trials []Trial) error {
	i := slices.IndexFunc(trials, func(t Trial) bool { return t.Name == point.Name })
	t := x.configuration(trials[i].Candidate)
	point.Changes = []string{}
	for _, setting := range x.settings {
		if was, is := x.today.Get(setting.Name), t.Get(setting.Name); was != is {
			point.Changes = append(point.Changes, fmt.Sprintf("%s %s → %s", setting.Name, was, is))
		}
	}
	text, err := t.YAML()
	if err != nil {
		return err
	}
	point.Configuration = string(text)
	if point.Spec, err = x.spec(point.Configuration); err != nil {
		return err
	}
	if point.EKS, err = t.ForEKS(); err != nil {
		return err
	}
	point.AKS, err = t.ForAKS()
	return err
}

// spec returns the request as pmk-sched.yaml, with another configuration, which enables the
// compiled-in plugins.
func (x *space) spec(configuration string) (string, error) {
	made := &v1alpha1.CustomScheduler{}
	if x.scheduler.Request != nil {
		made = x.scheduler.Request.DeepCopy()
	}
	made.APIVersion, made.Kind, made.Name = v1alpha1.APIVersion, v1alpha1.Kind, x.compiled.Request.Name
	made.Spec.Configuration = v1alpha1.Configuration{Inline: v1alpha1.Document(configuration)}
	for i := range made.Spec.Source.Plugins {
		p := &made.Spec.Source.Plugins[i]
		p.Weight, p.Args, p.Enable = 0, "", nil
	}
	text, err := yaml.Marshal(made)
	return string(text), err
}
