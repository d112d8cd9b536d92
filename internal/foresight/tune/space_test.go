package tune

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func spaceOf(t *testing.T, release, configuration string, plugins ...profiles.Plugin) *space {
	t.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	scheduler := pack.Scheduler{Name: "my-scheduler"}
	if configuration != "" {
		scheduler.Configuration.Source, scheduler.Configuration.SourceName = []byte(configuration), "scheduler.yaml"
	}
	compiled := kubescheduler.Scheduler{Request: scheduler, Release: parsed, Plugins: plugins}
	w := &world{nodes: 200, images: true, resources: []string{"example.com/gpu"}}
	x, err := newSpace(scheduler, compiled, []*world{w})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The search can continue from each preset, and the changes that lead to it describe it.
func TestPresetsArePartOfTheSpace(t *testing.T) {
	x := spaceOf(t, "v1.24.3", "")
	for _, given := range x.given() {
		if given.Levels == nil {
			t.Errorf("%s is not in the space", given.Name)
			continue
		}
		found := x.configuration(Candidate{Name: "trial", Levels: given.Levels})
		if again := x.levels(found); !slices.Equal(again, given.Levels) {
			t.Errorf("%s: levels %v became %v", given.Name, given.Levels, again)
		}
	}
}

const custom = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 7
profiles:
- schedulerName: other
- schedulerName: my-scheduler
  plugins:
    score:
      disabled: [{name: ImageLocality}]
      enabled: [{name: InterPodAffinity, weight: 17}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}
        resources: [{name: cpu, weight: 3}]
`

// Each choice of settings is a configuration that each release reads, of which the rest is today's.
func TestEachChoiceCanBeRendered(t *testing.T) {
	plugin := profiles.Plugin{Name: "CostAware", Points: []string{"preScore", "score"}}
	for _, release := range []string{"v1.20.0", "v1.22.2", "v1.24.3", "v1.29.2", "v1.37.1"} {
		for _, configuration := range []string{"", custom} {
			x := spaceOf(t, release, configuration, plugin)
			search := Search{Settings: x.settings, Objectives: Objectives()[:1], Seed: 1, Trials: 60}
			_, err := search.Run(x.given(), func(next []Candidate) (all []Trial, err error) {
				for _, c := range next {
					text, err := x.configuration(c).BreakTies(nil, []string{"http://127.0.0.1:1/0", "http://127.0.0.1:1/1"}, "p")
					if err != nil {
						return nil, err
					}
					r := profiles.Request{Release: x.compiled.Release, SchedulerName: "my-scheduler", Kubeconfig: "k", Source: text,
						SourceName: c.Name, Enable: x.compiled.Plugins}
					if _, err := profiles.Render(r); err != nil {
						t.Errorf("%s, %s: %v\n%s", release, c.Name, err, text)
					}
					all = append(all, Trial{Candidate: c, Figures: Figures{0}})
				}
				return all, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPointsHaveAllForms(t *testing.T) {
	x := spaceOf(t, "v1.34.2", custom, profiles.Plugin{Name: "CostAware", Points: []string{"preScore", "score"}})
	x.scheduler.Request = &v1alpha1.CustomScheduler{Spec: v1alpha1.CustomSchedulerSpec{
		Configuration: v1alpha1.Configuration{File: "scheduler.yaml", Inline: custom},
		Args:          []string{"--feature-gates=A=true"},
		Source:        v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "costaware", Weight: 2, Args: "{a: 1}"}}},
		Extenders:     []v1alpha1.Extender{{Name: "e", URLPrefix: "http://e"}}, Replicas: 2,
	}}
	point := Point{Name: "trial 1"}
	levels := x.levels(x.today)
	levels[0] = slices.Index(x.settings[0].Values, "MostAllocated")
	trials := []Trial{{Candidate: Candidate{Name: "trial 1", Levels: levels}}}
	if err := x.describe(&point, trials); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ text, part string }{
		{point.Configuration, "weight: 17"}, {point.Configuration, "percentageOfNodesToScore: 7"},
		{point.Configuration, "type: MostAllocated"}, {point.EKS.Text, `"type": "MostAllocated"`},
		{point.AKS.Text, "rawConfig: |"}, {strings.Join(point.Changes, "; "), "strategy as it is → MostAllocated"},
		{strings.Join(point.EKS.Lost, "; "), "weight 17 of InterPodAffinity"},
		{strings.Join(point.EKS.Lost, "; "), "compiled-in plugins: CostAware"},
		{strings.Join(point.EKS.Lost, "; "), "percentageOfNodesToScore: 7"},
		{strings.Join(point.AKS.Lost, "; "), "compiled-in plugins: CostAware"},
	} {
		if !strings.Contains(want.text, want.part) {
			t.Errorf("no %q in:\n%s", want.part, want.text)
		}
	}
	if strings.Contains(point.AKS.Text, "CostAware") {
		t.Errorf("AKS gets a compiled-in plugin:\n%s", point.AKS.Text)
	}
	spec, err := v1alpha1.Decode([]byte(point.Spec))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, point.Spec)
	}
	got, want := spec.Spec, x.scheduler.Request.DeepCopy().Spec
	want.Configuration = v1alpha1.Configuration{Inline: got.Configuration.Inline}
	want.Source.Plugins[0].Weight, want.Source.Plugins[0].Args = 0, "" // the configuration has them
	if !strings.Contains(string(got.Configuration.Inline), "type: MostAllocated") || !reflect.DeepEqual(got, want) {
		t.Errorf("the rest of the file is not as given:\n%s", point.Spec)
	}
}
