//go:build linux && cases

package commands

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// ownConfiguration is in a config API that the release of the cluster does not read.
const ownConfiguration = `apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: old-config
  plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: NodeResourcesMostAllocated, weight: 5}]}}
`

// testUpgradeCheck checks that a scheduler at the cluster's release is up to date, that older
// schedulers are reported with the changes of an upgrade, and that the check changes no objects.
func testUpgradeCheck(t *testing.T, pmkSched func(...string) run.Result) {
	const image = "registry.example.com/scheduler:"
	record(t, "current", image+apiserver.Release, apiserver.Release, v1alpha1.CustomSchedulerSpec{})
	pmkSched("upgrade", "check").OK(t).Prints(t, "up to date: "+apiserver.Release)
	pmkSched("upgrade", "check", "--name", "current").OK(t)
	pmkSched("upgrade", "--name", "current").OK(t).Prints(t, "scheduler current is up to date")
	pmkSched("upgrade", "check", "--name", "none").Fails(t, 2, "none has no revisions in namespace kube-system")
	pmkSched("upgrade").Fails(t, 2, "--name is required")

	record(t, "old-patch", image+"v1.24.1-plugins-0123456789", "v1.24.1", v1alpha1.CustomSchedulerSpec{
		Configuration: v1alpha1.Configuration{Preset: "binpack"},
		Source:        v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "timestamp"}}},
	})
	record(t, "old-config", image+"v1", "v1.22.17", v1alpha1.CustomSchedulerSpec{
		Configuration: v1alpha1.Configuration{File: "gone/own.yaml", Inline: ownConfiguration},
	})
	for name, gates := range map[string]string{
		"old-gates": "AllowInsecureBackendProxy=true,CSIStorageCapacity=true,JobReadyPods=true", "locked-gate": "IndexedJob=false",
	} {
		record(t, name, image+"v1.22.17", "v1.22.17",
			v1alpha1.CustomSchedulerSpec{Args: []string{"--feature-gates=" + gates}})
	}
	record(t, "from-file", image+"v1.23.17", "v1.23.17",
		v1alpha1.CustomSchedulerSpec{Image: v1alpha1.Image{Repository: "registry.example.com/other"}})
	before := resourceVersions(t)

	r := pmkSched("upgrade", "check", "-o", "json")
	r.Fails(t, 3, "5 of 6 schedulers are not at "+apiserver.Release)
	found := map[string]lifecycle.Upgrade{}
	for _, u := range run.Decode[replace.UpgradeReport](t, r.Stdout).Schedulers {
		found[u.Name] = u
	}
	if u := found["current"]; u.Due || u.Command != "" {
		t.Errorf("the scheduler that is up to date: %+v", u)
	}
	u := found["old-patch"]
	if !u.Due || !u.Build || u.Release != "v1.24.1" || u.Target != apiserver.Release ||
		!strings.HasPrefix(u.NewImage, image+"v1.24.3-plugins-") || !slices.Equal(u.Plugins, []string{"Timestamp"}) {
		t.Errorf("the scheduler of an older patch: %+v", u)
	}
	if len(u.KnownProblems) == 0 || u.Command != "pmk-sched upgrade --name old-patch" || u.From != u.To {
		t.Errorf("the scheduler of an older patch: %+v", u)
	}
	u = found["old-config"]
	if !u.Due || u.Blocked != "" || u.NewImage != image+apiserver.Release ||
		u.From != "kubescheduler.config.k8s.io/v1beta1" || u.To != "kubescheduler.config.k8s.io/v1beta3" {
		t.Errorf("the scheduler with a configuration to convert: %+v", u)
	}
	if changes := strings.Join(u.Changes, "\n"); !strings.Contains(changes, "gone/own.yaml") ||
		!strings.Contains(changes, "NodeResourcesMostAllocated") {
		t.Errorf("the changes of the conversion:\n%s", changes)
	}
	u = found["old-gates"]
	if changes := strings.Join(u.Changes, "\n"); !u.Due || u.Blocked != "" ||
		!strings.Contains(changes, "feature gate AllowInsecureBackendProxy=true left out: v1.24.3 does not have it") ||
		!strings.Contains(changes, "feature gate CSIStorageCapacity=true left out: v1.24.3 locks it to this value") {
		t.Errorf("the scheduler with feature gates of its release: %+v", u)
	}
	u = found["locked-gate"]
	if !u.Due || !strings.Contains(u.Blocked, "feature gate IndexedJob=false cannot be set: v1.24.3 locks it to true") {
		t.Errorf("the scheduler with a gate that is locked to the other value: %+v", u)
	}
	u = found["from-file"]
	if !u.Due || u.Blocked != "" || u.NewImage != "registry.example.com/other:"+apiserver.Release {
		t.Errorf("the scheduler of a file: %+v", u)
	}
	file := run.WriteFile(t, "pmk-sched.yaml",
		"apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: from-file}\nspec:\n  source: {branch: "+
			"v1.23.17}\n  image: {repository: registry.example.com/scheduler}\n")
	pmkSched("upgrade", "check", "-f", file).Fails(t, 3,
		"registry.example.com/scheduler:"+apiserver.Release+" (to build)", "spec.source.branch of "+file+" is v1.23.17")
	pmkSched("upgrade", "check", "--name", "old-patch", "--branch", "v1.24.1").OK(t)

	if after := resourceVersions(t); !maps.Equal(before, after) {
		t.Errorf("the checks changed objects:\n%v\n%v", before, after)
	}
}
