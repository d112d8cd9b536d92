package deploy_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// releaseInput returns the input of the plan of a scheduler for a release. The inputs for two
// releases differ in everything that a release index has.
func releaseInput(release string, change func(*deploy.PlanInput)) deploy.PlanInput {
	return chartInput(func(o *deploy.PlanInput) {
		o.Branch, o.Image, o.Spec.Args = release, "localhost/custom:"+release, []string{"--v=" + release[len(release)-1:]}
		if release != "v1.20.15" {
			o.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
				ResourceNames: []string{release}, Verbs: []string{"get"}}}
		}
		change(o)
	})
}

func releasePlans(t *testing.T, change func(*deploy.PlanInput), releases ...string) []*deploy.Plan {
	t.Helper()
	var plans []*deploy.Plan
	for _, release := range releases {
		plan, err := releaseInput(release, change).Plan()
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}
	return plans
}

func releasesChart(t *testing.T, change func(*deploy.PlanInput), releases ...string) map[string][]byte {
	t.Helper()
	files, warnings, err := deploy.ReleasesChart(releasePlans(t, change, releases...), false)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return files
}

// One chart installs for each API server the objects that render prints for the release.
func TestOneChartSelectsTheReleaseOfTheAPIServer(t *testing.T) {
	releases := []string{"v1.34.7", "v1.20.15", "v1.34.2", "v1.24.3", "v1.34.10", "v1.37.1"}
	for name, change := range map[string]func(*deploy.PlanInput){
		"plain":    func(*deploy.PlanInput) {},
		"replicas": func(o *deploy.PlanInput) { o.Spec.Replicas, o.Spec.AnyNode = 3, true },
		"preset":   func(o *deploy.PlanInput) { o.Spec.Configuration.Preset = "binpack" },
	} {
		files := releasesChart(t, change, releases...)
		for _, c := range []struct{ version, minor, want string }{
			{"v1.20.15", "20", "v1.20.15"},
			{"v1.24.17-eks-abc", "24+", "v1.24.3"},
			{"v1.34", "34", "v1.34.2"},
			{"v1.34.7+k3s1", "34", "v1.34.7"},
			{"v1.34.8-gke.100", "34+", "v1.34.7"},
			{"v1.34.11", "34", "v1.34.10"},
			{"v1.34.0", "34", "v1.34.2"},
			{"v1.37.1", "37", "v1.37.1"},
			{"", "37+", "v1.37.1"},
		} {
			t.Run(name+" "+c.version, func(t *testing.T) {
				server := &chartutil.KubeVersion{Version: c.version, Major: "1", Minor: c.minor}
				got := templateObjects(t, files, nil, server)
				want := rendered(t, releaseInput(c.want, change))
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("helm template differs from render (-render +helm):\n%s", diff)
				}
			})
		}
	}
}

func TestOneChartRefusesAnAPIServerThatItHasNoSchedulerFor(t *testing.T) {
	files := releasesChart(t, func(*deploy.PlanInput) {}, "v1.24.3", "v1.34.2")
	server := &chartutil.KubeVersion{Version: "v1.35.1", Major: "1", Minor: "35"}
	_, err := templateFor(t, files, "kube-system", nil, server)
	want := "this chart has no kube-scheduler for Kubernetes 1.35, only for 1.24, 1.34"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A value of the user is for all releases, and a value of one release for the release only.
func TestValuesOfTheUserWinOverTheRelease(t *testing.T) {
	change := func(*deploy.PlanInput) {}
	files := releasesChart(t, change, "v1.24.3", "v1.34.2")
	server := &chartutil.KubeVersion{Version: "v1.34.7", Major: "1", Minor: "34"}
	for _, values := range []map[string]any{
		{"image": "mirror/custom:v9"},
		{"releases": map[string]any{"v1.34.2": map[string]any{"image": "mirror/custom:v9"}}},
	} {
		o := releaseInput("v1.34.2", change)
		o.Image = "mirror/custom:v9"
		if diff := gocmp.Diff(rendered(t, o), templateObjects(t, files, values, server)); diff != "" {
			t.Errorf("%v (-render +helm):\n%s", values, diff)
		}
	}
}

func templateObjects(
	t *testing.T, files map[string][]byte, values map[string]any, server *chartutil.KubeVersion,
) []map[string]any {
	t.Helper()
	rendered, err := templateFor(t, files, "kube-system", values, server)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, join(rendered))
}
