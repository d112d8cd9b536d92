package install_test

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/profiles"
)

const ownProfiles = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
  percentageOfNodesToScore: 50
  plugins:
    # the first
    score: {enabled: [{name: NodeResourcesFit, weight: 2}]}
    preScore:
      disabled:
      - name: "*"
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: "{{cpu}}", weight: 1}]}
`

const twoProfiles = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
- schedulerName: other
  plugins: {score: {disabled: [{name: NodeResourcesFit}]}}
`

// options are those of a scheduler without a cluster.
func chartOptions(change func(*install.Options)) install.Options {
	o := install.Options{Name: "custom", Image: "localhost/custom:v1", Branch: "v1.36.3", Version: "v0.1.0", Credentials: install.CredentialsServiceAccount}
	change(&o)
	return o
}

func TestTheChartOfAPlanIsThePlan(t *testing.T) {
	own := func(text string) func(*install.Options) {
		return func(o *install.Options) { o.Configuration, o.ConfigurationName = []byte(text), "f.yaml" }
	}
	for name, change := range map[string]func(*install.Options){
		"plain":        func(*install.Options) {},
		"preset":       func(o *install.Options) { o.Preset = "binpack" },
		"own":          own(ownProfiles),
		"two profiles": own(twoProfiles),
		"old release":  func(o *install.Options) { o.Branch = "v1.21.3" },
		"replicas":     func(o *install.Options) { o.Replicas = 3 },
		"any node":     func(o *install.Options) { o.AnyNode = true },
		"nodes":        func(o *install.Options) { o.NodeSelector = map[string]string{"pool": "system", "fast": ""} },
		"plugins": func(o *install.Options) {
			o.Plugins = []profiles.Plugin{{Name: "LoadAware", Points: []string{"filter", "score"}, Weight: 2, Args: []byte("{address: 'http://custom:9090'}")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := chartOptions(change)
			plan, err := install.NewPlan(nil, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			files, err := install.Chart(plan, false)
			if err != nil {
				t.Fatal(err)
			}
			want, err := install.Render(plan, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(objects(t, string(want)), template(t, files, nil)); diff != "" {
				t.Errorf("helm template differs from render (-render +helm):\n%s\n%s", diff, files["templates/_scheduler.tpl"])
			}
			// Another name, image and number give what a plan with them gives.
			if name == "two profiles" {
				return // their names are a person's own
			}
			changed := chartOptions(change)
			changed.Name, changed.Image, changed.Replicas = "renamed", "localhost/renamed:v2", 2
			if other, err := install.NewPlan(nil, nil, changed); err != nil {
				t.Error(err)
			} else if want, err = install.Render(other, false); err != nil {
				t.Error(err)
			}
			got := template(t, files, map[string]any{"name": "renamed", "image": "localhost/renamed:v2", "replicas": 2})
			if diff := gocmp.Diff(objects(t, string(want)), got); diff != "" {
				t.Errorf("with other values (-render +helm):\n%s", diff)
			}
		})
	}
}

// template is `helm template` of a chart.
func template(t *testing.T, files map[string][]byte, values map[string]any) []map[string]any {
	t.Helper()
	var buffered []*loader.BufferedFile
	for name, data := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: data})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "r", Namespace: "kube-system"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, given)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for name, document := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString("---\n" + document + "\n")
		}
	}
	return objects(t, text.String())
}

// objects reads documents and sorts them; fields that are null are not there.
func objects(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, document := range bytes.Split([]byte("\n"+text), []byte("\n---\n")) {
		o := map[string]any{}
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatalf("%s\n%v", document, err)
		}
		if len(o) == 0 {
			continue
		}
		if pod, found, _ := unstructured.NestedMap(o, "spec", "template", "spec"); found && pod["affinity"] == nil {
			unstructured.RemoveNestedField(o, "spec", "template", "spec", "affinity")
		}
		all = append(all, o)
	}
	key := func(o map[string]any) string {
		u := unstructured.Unstructured{Object: o}
		return u.GetKind() + "/" + u.GetName()
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return cmp.Compare(key(a), key(b)) })
	return all
}
