//go:build matrix

package conversion

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// A Policy and its conversion have the same effective profile: the same plugins at the same
// extension points with the same weights and arguments, in the release that reads both. 1.22 is
// left out: it cannot write out a plugin that v1beta2 does not have.
func TestPoliciesKeepTheirMeaning(t *testing.T) {
	files, err := filepath.Glob("../../testdata/policies/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no policies: %v", err)
	}
	for _, release := range versions.Releases() {
		if release.Minor > 21 || !asked(release) {
			continue
		}
		scheduler := schedulerOf(t, release)
		for _, file := range files {
			t.Run(release.String()+" "+filepath.Base(file), func(t *testing.T) {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				converted, err := profiles.Convert(profiles.ConvertRequest{Release: release, Source: source, SourceName: file})
				if err != nil {
					t.Fatal(err)
				}
				after, err := scheduler.Read(t.Context(), converted.YAML)
				if err != nil {
					t.Fatalf("%v\n%s", err, converted.YAML)
				}
				if diff := cmp.Diff(profileOf(t, []byte(readPolicy(t.Context(), t, scheduler, file))),
					profileOf(t, []byte(after))); diff != "" {
					t.Errorf("another profile (-policy +configuration):\n%s\n%s", diff, converted.YAML)
				}
			})
		}
	}
}

// A preset written as a Policy, with its configuration, results in the profile of the configuration
// alone; and up to 1.21 the scheduler keeps the name in the configuration.
func TestPresetsAsPoliciesKeepTheirMeaning(t *testing.T) {
	for _, release := range versions.Releases() {
		if release.Minor > 22 || !asked(release) {
			continue
		}
		scheduler := schedulerOf(t, release)
		for _, preset := range profiles.Presets() {
			if preset.Name == "topology-spread" {
				continue // no Policy has arguments of PodTopologySpread
			}
			t.Run(release.String()+" "+preset.Name, func(t *testing.T) {
				request := requestFor(release, preset.Name, nil)
				if release.Minor == 22 {
					request.SchedulerName = "default-scheduler" // it accepts no other
				}
				plain, err := profiles.Render(request)
				if err != nil {
					t.Fatal(err)
				}
				request.Extenders = extenders(t)[:1] // the other takes over a resource, which is an argument
				policy, err := profiles.RenderPolicy(request)
				if err != nil {
					t.Fatal(err)
				}
				text, err := profiles.WithoutFiles(policy.Policy)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), "policy.cfg")
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
				before, err := scheduler.Read(t.Context(), plain.YAML)
				if err != nil {
					t.Fatal(err)
				}
				after, err := scheduler.Read(t.Context(), policy.YAML, "--policy-config-file="+file)
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, policy.YAML, text)
				}
				if !strings.Contains(after, "schedulerName: "+request.SchedulerName+"\n") {
					t.Errorf("the scheduler is not named %s:\n%s", request.SchedulerName, after)
				}
				want := profileOf(t, []byte(before))
				if release.Minor == 22 {
					// It looks for volumes of the mode ReadWriteOncePod, which need a gate that is off there.
					delete(want.Weights["preFilter"], "VolumeRestrictions")
				}
				if diff := cmp.Diff(want, profileOf(t, []byte(after))); diff != "" {
					t.Errorf("another profile (-configuration +policy):\n%s\n%s", diff, text)
				}
				wrong := strings.ReplaceAll(string(text), "weight: 4\n", "weight: 0\n")
				if wrong == string(text) {
					t.Fatalf("the extender has no weight:\n%s", text)
				}
				if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := scheduler.Read(t.Context(), policy.YAML, "--policy-config-file="+file); err == nil {
					t.Error("the extenders of the Policy are not read: one without weight is taken")
				}
			})
		}
	}
}

// readPolicy returns the configuration that the scheduler writes for a Policy.
func readPolicy(ctx context.Context, t *testing.T, s *schedulers.Scheduler, file string) string {
	t.Helper()
	dir := t.TempDir()
	out, kubeconfig := filepath.Join(dir, "written.yaml"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(schedulers.StandInKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, "--policy-config-file", file, "--kubeconfig", kubeconfig, "--leader-elect=false", "--port=0",
		"--secure-port=0", "--write-config-to", out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// profile is the only profile of a configuration that was written out, without the order of its
// plugins.
type profile struct {
	Weights   map[string]map[string]int32
	Arguments map[string]any
}

func profileOf(t *testing.T, written []byte) profile {
	t.Helper()
	var doc struct {
		Profiles []struct {
			Plugins map[string]struct {
				Enabled []struct {
					Name   string
					Weight int32
				}
			}
			PluginConfig []struct {
				Name string
				Args any
			}
		}
	}
	if err := yaml.Unmarshal(written, &doc); err != nil || len(doc.Profiles) != 1 {
		t.Fatalf("%d profiles, %v", len(doc.Profiles), err)
	}
	p := profile{map[string]map[string]int32{}, map[string]any{}}
	for point, set := range doc.Profiles[0].Plugins {
		p.Weights[point] = map[string]int32{}
		for _, e := range set.Enabled {
			p.Weights[point][e.Name] = e.Weight
		}
	}
	for _, c := range doc.Profiles[0].PluginConfig {
		p.Arguments[c.Name] = c.Args
	}
	return p
}
