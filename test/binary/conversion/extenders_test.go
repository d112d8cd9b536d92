package conversion

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// extenders use every field that is written.
func extenders(t *testing.T) []profiles.Extender {
	t.Helper()
	authority, err := os.ReadFile("../../../profiles/testdata/extenders/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	return []profiles.Extender{
		{
			Name: "load", URLPrefix: "https://127.0.0.1:1/load", FilterVerb: "filter", PrioritizeVerb: "prioritize",
			PreemptVerb: "preempt", Weight: 4,
			EnableHTTPS: true, TLS: &profiles.ExtenderTLS{ServerName: "load", CAData: authority, CertFile: "/no/such.crt",
				KeyFile: "/no/such.key"}, Ignorable: &yes, NodeCacheCapable: &yes,
		},
		{
			Name: "gpu", URLPrefix: "http://127.0.0.1:1/gpu", FilterVerb: "filter", BindVerb: "bind",
			HTTPTimeout: 1500 * time.Millisecond, Ignorable: &no,
			NodeCacheCapable: &no, ManagedResources: []profiles.ManagedResource{{Name: "example.com/gpu",
				IgnoredByScheduler: true}, {Name: "example.com/fpga"}},
		},
	}
}

// extendersOf returns the extenders in a configuration that a scheduler wrote, without fields that
// are false.
func extendersOf(t *testing.T, written string) []map[string]any {
	t.Helper()
	var doc struct{ Extenders []map[string]any }
	if err := yaml.Unmarshal([]byte(written), &doc); err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.Extenders {
		if tls, ok := e["tlsConfig"].(map[string]any); ok && tls["insecure"] == false {
			delete(tls, "insecure") // some releases write it, others do not
		}
		for name, none := range map[string]any{"enableHTTPS": false, "nodeCacheCapable": false, "ignorable": false} {
			if e[name] == none {
				delete(e, name)
			}
		}
	}
	return doc.Extenders
}

// A scheduler reads every field of the extenders that are rendered, and writes them out again.
func TestSchedulersReadTheExtendersThatAreRendered(t *testing.T) {
	for _, release := range versions.Releases() {
		if !asked(release) {
			continue
		}
		t.Run(release.String(), func(t *testing.T) {
			scheduler := schedulerOf(t, release)
			for _, preset := range profiles.Presets() {
				rendered, err := profiles.Render(requestFor(release, preset.Name, extenders(t)))
				if err != nil {
					t.Fatal(err)
				}
				text, err := profiles.WithoutFiles(rendered.YAML)
				if err != nil {
					t.Fatal(err)
				}
				written, err := scheduler.Read(t.Context(), text)
				if err != nil {
					t.Fatalf("%s: %v\n%s", preset.Name, err, text)
				}
				if diff := cmp.Diff(extendersOf(t, string(text)), extendersOf(t, written)); diff != "" {
					t.Errorf("%s: read otherwise (-rendered +written):\n%s", preset.Name, diff)
				}
			}
		})
	}
}

func requestFor(release versions.Release, preset string, extenders []profiles.Extender) profiles.Request {
	return profiles.Request{
		Release: release, SchedulerName: "my-scheduler", Kubeconfig: schedulers.Kubeconfigs()[0], Preset: preset,
		LeaderElect: true, Extenders: extenders,
	}
}

// Validate reports a problem exactly if the release refuses to start with the configuration.
func TestValidateRefusesExtendersThatTheReleaseRefuses(t *testing.T) {
	const start = "extenders: [{urlPrefix: 'https://127.0.0.1:1', filterVerb: f, enableHTTPS: true"
	for _, release := range versions.Releases() {
		if !asked(release) {
			continue
		}
		scheduler := schedulerOf(t, release)
		for name, rest := range map[string]string{
			"no CA":                    start + "}]",
			"no address, no verb":      "extenders: [{urlPrefix: '::'}]",
			"a time-out below 0":       start + ", httpTimeout: -1s}]",
			"insecure with a CA":       start + ", tlsConfig: {insecure: true, caData: eA==}}]",
			"a CA that is none":        start + ", tlsConfig: {caData: eA==}}]",
			"a resource of a name":     start + ", managedResources: [{name: 'A_.b/c'}]}]",
			"a resource of Kubernetes": start + ", managedResources: [{name: x.kubernetes.io/c}]}]",
			"a resource nearly of it":  start + ", managedResources: [{name: kubernetes.io.example.com/c}]}]",
			"a resource ignored twice": start +
				", managedResources: [{name: a.b/c, ignoredByScheduler: true}]}]\nprofiles: [{pluginConfig: [{name: " +
				"NodeResourcesFit, args: {ignoredResources: [a.b/d]}}]}]",
		} {
			t.Run(release.String()+" "+name, func(t *testing.T) {
				text := []byte("apiVersion: " + scheduler.Rules.Render +
					"\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: " + schedulers.Kubeconfigs()[0] + "}\n" +
					rest + "\n")
				judged, err := profiles.Validate(profiles.ValidateRequest{Release: release, Source: text})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := scheduler.Read(t.Context(), text); (err == nil) != judged.Valid() {
					t.Errorf("the scheduler says %v, and here %v is known", err, judged.Problems)
				}
			})
		}
	}
}
