package profiles_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// authority returns a CA certificate.
func authority(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/extenders/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// everyExtender returns extenders that use each field at least once.
func everyExtender(t *testing.T) []profiles.Extender {
	t.Helper()
	return []profiles.Extender{
		{
			Name: "load", URLPrefix: "https://load.kube-system.svc:8443", FilterVerb: "filter", PrioritizeVerb: "prioritize",
			PreemptVerb: "preempt",
			Weight:      4, EnableHTTPS: true, Ignorable: yes(), NodeCacheCapable: yes(),
			TLS: &profiles.ExtenderTLS{ServerName: "load", CAData: authority(t), CertFile: "/srv/kubernetes/extenders/load.crt",
				KeyFile: "/srv/kubernetes/extenders/load.key"},
		},
		{
			Name: "gpu", URLPrefix: "http://127.0.0.1:8888/gpu", FilterVerb: "filter", BindVerb: "bind", Ignorable: no(),
			NodeCacheCapable: no(),
			HTTPTimeout:      1500 * time.Millisecond,
			ManagedResources: []profiles.ManagedResource{{Name: "example.com/gpu", IgnoredByScheduler: true},
				{Name: "example.com/fpga"}},
		},
	}
}

func TestRenderWritesExtenders(t *testing.T) {
	source, err := os.ReadFile("testdata/extenders/own.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{"v1.20.15", "v1.24.3", "v1.33.13", "v1.37.1"} {
		t.Run(release, func(t *testing.T) {
			r := request(t, release)
			r.Source, r.SourceName, r.Extenders = source, "own.yaml", everyExtender(t)
			out, err := profiles.Render(r)
			if err != nil {
				t.Fatal(err)
			}
			equalRendered(t, "testdata/extenders/own-"+release+".yaml", out)
			if diff := cmp.Diff([]string{"/srv/kubernetes/extenders/load.crt", "/srv/kubernetes/extenders/load.key"},
				out.Files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			without, err := profiles.WithoutFiles(out.YAML)
			if err != nil || bytes.Contains(without, []byte("/extenders/load.")) || !bytes.Contains(without, []byte("caData")) {
				t.Errorf("the files are still there, or more is gone (%v):\n%s", err, without)
			}
		})
	}
}

func TestWithoutFilesKeepsOtherConfigurations(t *testing.T) {
	const text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration   # unchanged\n"
	if out, err := profiles.WithoutFiles([]byte(text)); err != nil || string(out) != text {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := profiles.WithoutFiles([]byte("{")); err == nil {
		t.Error("invalid YAML is accepted")
	}
}

// The Policy is equivalent to the configuration.
func TestRenderPolicyMatchesGoldenFiles(t *testing.T) {
	own, err := filepath.Glob("testdata/extenders/policy*.in.*")
	if err != nil || len(own) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, preset := range profiles.Presets() {
		if preset.Name != "topology-spread" { // PodTopologySpread has no arguments in a Policy
			own = append(own, preset.Name)
		}
	}
	for _, source := range own {
		t.Run(filepath.Base(source), func(t *testing.T) {
			r := request(t, "v1.21.3")
			r.Extenders = everyExtender(t)
			name, _, fromFile := strings.Cut(filepath.Base(source), ".in.")
			r.Preset = name
			if fromFile {
				r.Preset, r.SourceName = "", filepath.Base(source)
				if r.Source, err = os.ReadFile(source); err != nil {
					t.Fatal(err)
				}
			}
			out, err := profiles.RenderPolicy(r)
			if err != nil {
				t.Fatal(err)
			}
			out.YAML = append(append(out.YAML, "---\n"...), out.Policy...)
			equalRendered(t, "testdata/extenders/"+strings.TrimPrefix(name, "policy-")+"-as-policy.yaml", out)
		})
	}
}

func TestRenderPolicyRejectsWhatPolicyCannotExpress(t *testing.T) {
	const v1beta1 = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
	results := transcript{}
	for _, c := range []struct {
		name, release, preset, source string
		change                        func(*profiles.Request)
		want, hint                    string
	}{
		{name: "a release that reads none", release: "v1.23.17",
			want: "v1.23.17 does not read a Policy; the last release to do so was 1.22", hint: "--policy-configmap"},
		{name: "a second scheduler of 1.22", release: "v1.22.2",
			want: "so it would compete with the default scheduler for pods, and no pod could use"},
		{name: "arguments of spreading", release: "v1.21.3", preset: "topology-spread",
			want: "preset topology-spread: a Policy cannot express: the arguments of plugin PodTopologySpread"},
		{name: "two profiles", release: "v1.21.3", source: v1beta1 +
			"profiles: [{schedulerName: my-scheduler}, {schedulerName: b}]\n", want: "a Policy cannot have 2 profiles"},
		{name: "another binder", release: "v1.20.15",
			source: v1beta1 +
				"profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}], enabled: [{name: MyPlugin}]}}}]\n",
			change: func(r *profiles.Request) { r.Plugins = []string{extraName} },
			want:   "plugin MyPlugin at bind; plugin DefaultBinder disabled at bind"},
		{name: "no preemption", release: "v1.20.15",
			source: v1beta1 + "profiles: [{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]\n",
			want:   "plugin DefaultPreemption disabled at postFilter"},
		{name: "a mandatory predicate left out", release: "v1.21.3",
			source: v1beta1 + "profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]\n",
			want:   "plugin TaintToleration disabled at filter"},
		{name: "a filter without its preFilter", release: "v1.21.3",
			source: v1beta1 + "profiles: [{plugins: {preFilter: {disabled: [{name: NodePorts}]}}}]\n",
			want:   "plugin NodePorts disabled at preFilter"},
		{name: "no hard affinity", release: "v1.21.3",
			source: v1beta1 + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 0}}]}]\n",
			want:   "the arguments of plugin"},
		{name: "resources ignored by groups", release: "v1.21.3",
			source: v1beta1 +
				"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [example.com]}}]}]\n",
			want: "the arguments of plugin"},
		{name: "compiled-in plugin", release: "v1.21.3", change: func(r *profiles.Request) {
			r.Enable = []profiles.Plugin{
				{Name: extraName, Points: []string{"score"}}}
		},
			want: "plugin MyPlugin cannot be enabled in a Policy, which only supports in-tree plugins"},
	} {
		r := request(t, c.release)
		r.Preset, r.Source = c.preset, []byte(c.source)
		if c.change != nil {
			c.change(&r)
		}
		out, err := profiles.RenderPolicy(r)
		results.add(c.name, err, nil, nil)
		t.Run(c.name, func(t *testing.T) {
			if err == nil {
				t.Fatalf("it was rendered:\n%s", out.Policy)
			}
			if !strings.Contains(err.Error(), c.want) || !hinted(err, c.hint) {
				t.Errorf("got %v", err)
			}
		})
	}
	results.equal(t, "render-policy-refuses.txt")
}

// A compiled-in plugin that is not enabled does not prevent a Policy, and as the default scheduler
// 1.22 supports a Policy.
func TestRenderPolicyForDefaultScheduler(t *testing.T) {
	r := request(t, "v1.22.2")
	r.SchedulerName, r.LeaseName = "default-scheduler", "kube-scheduler"
	r.Enable = []profiles.Plugin{{Name: extraName, Points: []string{"score"}, Enable: []string{}}}
	r.Extenders = everyExtender(t)[1:]
	out, err := profiles.RenderPolicy(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out.Policy), "httpTimeout: 1500000000\n") ||
		strings.Contains(string(out.YAML), "extenders") {
		t.Errorf("%s---\n%s", out.YAML, out.Policy)
	}
}

// hinted reports whether the hint of an error contains text.
func hinted(err error, text string) bool {
	with, ok := err.(interface{ Hint() string })
	return text == "" || ok && strings.Contains(with.Hint(), text)
}

func release(t *testing.T, name string) versions.Release {
	t.Helper()
	r, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Any result is a Policy that reads back unchanged, or an error of the input.
func FuzzRenderPolicy(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*/*.in.*")
	if err != nil {
		f.Fatal(err)
	}
	for i, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source), uint8(i))
	}
	f.Fuzz(func(t *testing.T, source string, minor uint8) {
		r := request(t, "v1.20.15")
		r.Release.Minor = 20 + int(minor)%2
		r.Source, r.SourceName = []byte(source), "f.yaml"
		r.Extenders = []profiles.Extender{{Name: "x", URLPrefix: "http://127.0.0.1:1", FilterVerb: "filter",
			Ignorable: yes()}}
		out, err := profiles.RenderPolicy(r)
		if err != nil {
			var wrong *profiles.Error
			if out != nil || !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
				t.Fatalf("%v is not an error of the input", err)
			}
			return
		}
		r.Source, r.Extenders = out.Policy, nil
		again, err := profiles.RenderPolicy(r)
		if err != nil {
			t.Fatalf("what was rendered is refused: %v\n%s", err, out.Policy)
		}
		if diff := cmp.Diff(string(out.Policy), string(again.Policy)); diff != "" {
			t.Fatalf("rendered again it changes:\n%s", diff)
		}
	})
}
