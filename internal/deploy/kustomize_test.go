package deploy_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

func releasesKustomize(t *testing.T, change func(*deploy.PlanInput), releases ...string) map[string][]byte {
	t.Helper()
	files, warnings, err := deploy.ReleasesKustomize(releasePlans(t, change, releases...), false)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return files
}

// build is `kustomize build` of a cluster's kustomization next to the directory scheduler.
func build(t *testing.T, files map[string][]byte, kustomization string) []map[string]any {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := fs.WriteFile("/scheduler/"+name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.WriteFile("/cluster/kustomization.yaml", []byte(kustomization)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/cluster")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(text))
}

// The base with the component of a minor gives the objects that render prints for the newest patch,
// and leaves other objects of the cluster's kustomization alone.
func TestComponentsOfAMinorGiveWhatRenderPrints(t *testing.T) {
	releases := []string{"v1.34.7", "v1.20.15", "v1.34.2", "v1.24.3", "v1.34.10", "v1.37.1"}
	for name, change := range map[string]func(*deploy.PlanInput){
		"plain":    func(*deploy.PlanInput) {},
		"replicas": func(o *deploy.PlanInput) { o.Spec.Replicas, o.Spec.AnyNode = 3, true },
		"preset":   func(o *deploy.PlanInput) { o.Spec.Configuration.Preset = "binpack" },
		"same":     func(o *deploy.PlanInput) { o.Spec.Args, o.Spec.RBAC.Rules, o.Image = nil, nil, "localhost/custom:v1" },
	} {
		files := releasesKustomize(t, change, releases...)
		for minor, release := range map[string]string{
			"1.20": "v1.20.15", "1.24": "v1.24.3", "1.34": "v1.34.10", "1.37": "v1.37.1",
		} {
			t.Run(name+" "+minor, func(t *testing.T) {
				got := build(t, files, `resources: [../scheduler/base]
components: [../scheduler/components/`+minor+`]
configMapGenerator:
- {name: other, literals: [a=b], options: {disableNameSuffixHash: true}}
`)
				other := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other"},
					"data": map[string]any{"a": "b"}}
				want := append(rendered(t, releaseInput(release, change)), other)
				if diff := gocmp.Diff(sorted(want), got); diff != "" {
					t.Errorf("kustomize build differs from render (-render +kustomize):\n%s", diff)
				}
			})
		}
	}
}

// What is equal in all releases is in the base only, and the files do not depend on the order of
// the releases.
func TestComponentsHaveOnlyDifferences(t *testing.T) {
	releases := []string{"v1.24.3", "v1.34.2"}
	files := releasesKustomize(t, func(*deploy.PlanInput) {}, releases...)
	slices.Reverse(releases)
	if diff := gocmp.Diff(files, releasesKustomize(t, func(*deploy.PlanInput) {}, releases...)); diff != "" {
		t.Errorf("another order of releases (-first +second):\n%s", diff)
	}
	for name, text := range files {
		inBase := strings.HasPrefix(name, "base/")
		for _, word := range []string{"v1.24.3", "v1.34.2", "kubescheduler.config.k8s.io"} {
			if inBase && bytes.Contains(text, []byte(word)) {
				t.Errorf("%s has %q of one release:\n%s", name, word, text)
			}
		}
		if !inBase && bytes.Contains(text, []byte("runAsNonRoot")) {
			t.Errorf("%s repeats the base:\n%s", name, text)
		}
	}
	want := []string{
		"base/kustomization.yaml", "base/objects.yaml",
		"components/1.24/clusterrole-custom-plugins.yaml", "components/1.24/deployment-custom.yaml",
		"components/1.24/kustomization.yaml", "components/1.24/objects.yaml",
		"components/1.34/clusterrole-custom-plugins.yaml", "components/1.34/deployment-custom.yaml",
		"components/1.34/kustomization.yaml", "components/1.34/objects.yaml",
	}
	if diff := gocmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The example builds, with a value of the cluster's own.
func TestExampleOfACluster(t *testing.T) {
	example, err := os.ReadFile("../../examples/gitops/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	change := func(o *deploy.PlanInput) { o.Name = "my-scheduler" }
	got := build(t, releasesKustomize(t, change, "v1.24.3", "v1.34.2"), string(example))
	o := releaseInput("v1.34.2", change)
	want := rendered(t, o)
	for _, object := range want {
		if object["kind"] == "Deployment" {
			object["spec"].(map[string]any)["replicas"] = float64(2)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-render +kustomize:\n%s", diff)
	}
}
