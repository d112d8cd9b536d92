package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func TestRecipeCompletesWhatTheRequestLeavesOpen(t *testing.T) {
	recipe := v1alpha1.Recipe{From: "/kubernetes", Go: "1.18.10", Plugins: []v1alpha1.Plugin{{Builtin: "loadaware"}},
		Imports: []string{"example.com/m"}, Base: "base", Busybox: "busybox", Platforms: []string{"linux/arm64"}}
	built := v1alpha1.CustomSchedulerSpec{
		Source: v1alpha1.Source{From: "/kubernetes", Go: "1.18.10", Plugins: recipe.Plugins, Imports: recipe.Imports},
		Image:  v1alpha1.Image{Base: "base", Busybox: "busybox", Platforms: recipe.Platforms},
	}
	given := v1alpha1.CustomSchedulerSpec{
		Source: v1alpha1.Source{From: "/src", Go: "1.24.1", Plugins: []v1alpha1.Plugin{{Path: "/p"}}, Imports: []string{"i"}},
		Image:  v1alpha1.Image{Base: "b", Busybox: "y", Platforms: []string{"linux/amd64"}},
	}
	base, busybox := built, built
	base.Image.Base, base.Image.Busybox = "b", ""
	busybox.Image.Base, busybox.Image.Busybox = "", "y"
	for name, tc := range map[string]struct{ spec, want v1alpha1.CustomSchedulerSpec }{
		"nothing":                {want: built},
		"everything":             {given, given},
		"a base without busybox": {v1alpha1.CustomSchedulerSpec{Image: v1alpha1.Image{Base: "b"}}, base},
		"busybox with its base":  {v1alpha1.CustomSchedulerSpec{Image: v1alpha1.Image{Busybox: "y"}}, busybox},
	} {
		recipe.Complete(&tc.spec)
		if diff := cmp.Diff(tc.want, tc.spec); diff != "" {
			t.Errorf("%s is given (-want +got):\n%s", name, diff)
		}
	}
}
