package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// again returns the options of the scheduler that Again describes for v1.25.4, and the flags of its build.
func again(t *testing.T, f Flags, before Deployed) (deploy.Options, BuildFlags, error) {
	t.Helper()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	s, build, err := s.Again(before, "v1.25.4", false)
	if err != nil {
		return deploy.Options{}, build, err
	}
	o, err := s.WithImage("localhost/s:v1.25.4").Scheduler()
	return o, build, err
}

func TestSchedulerIsDeployedAgainWithItsRecordedFlags(t *testing.T) {
	before := Deployed{
		Flags: []string{
			"--pull-policy=Never", "--lossy=true", "--preset=binpack", "--credentials=hostpath", "--replicas=2", "--port=11000",
			"--node-selector=a=1", "--node-selector=b=2", "--with=builtin:timestamp", "--with=builtin:blockall", "--import=example.com/scheme", "--busybox=/bin/busybox",
			"--platform=linux/amd64",
		},
		Credentials: deploy.CredentialsServiceAccount,
	}
	o, build, err := again(t, Flags{Name: "n"}, before)
	if err != nil {
		t.Fatal(err)
	}
	want := deploy.Options{
		Name: "n", Namespace: DefaultNamespace, Image: "localhost/s:v1.25.4", Branch: "v1.25.4", PullPolicy: "Never", Preset: "binpack", Lossy: true,
		Credentials: "hostpath", Replicas: 2, Port: 11000, NodeSelector: map[string]string{"a": "1", "b": "2"}, Flags: before.Flags[:11],
	}
	o.Now = want.Now
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantBuild := BuildFlags{
		With: []string{"builtin:timestamp", "builtin:blockall"}, Imports: []string{"example.com/scheme"}, Busybox: "/bin/busybox", Platforms: []string{"linux/amd64"},
	}
	if diff := cmp.Diff(wantBuild, build); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}
}

// The file of --config may be gone: the deployed configuration is what it said.
func TestConfigurationIsThatOfTheRevision(t *testing.T) {
	before := Deployed{Flags: []string{"--config=gone.yaml"}, Configuration: []byte("kind: KubeSchedulerConfiguration\n"), ConfigurationName: "configuration of revision 3"}
	o, _, err := again(t, Flags{Name: "n"}, before)
	if err != nil || string(o.Configuration) != string(before.Configuration) || o.ConfigurationName != before.ConfigurationName {
		t.Errorf("configuration %q (%s), %v", o.Configuration, o.ConfigurationName, err)
	}
	if o.Credentials != "" && o.Credentials != deploy.Auto {
		t.Errorf("credentials %q without a record of them", o.Credentials)
	}
	if diff := cmp.Diff(before.Flags, o.Flags); diff != "" {
		t.Errorf("recorded flags (-want +got):\n%s", diff)
	}
}

func TestPolicyBecomesAConfigurationWhereNoReleaseReadsIt(t *testing.T) {
	before := Deployed{Flags: []string{"--config=policy.json", "--policy-configmap=true"}, Configuration: []byte("kind: Policy\n")}
	o, _, err := again(t, Flags{Name: "n"}, before)
	if err != nil || o.PolicyConfigMap || string(o.Configuration) != "kind: Policy\n" {
		t.Errorf("PolicyConfigMap %t, configuration %q, %v", o.PolicyConfigMap, o.Configuration, err)
	}
	if diff := cmp.Diff([]string{"--config=policy.json"}, o.Flags); diff != "" {
		t.Errorf("recorded flags (-want +got):\n%s", diff)
	}
}

const describedScheduler = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: n}
spec:
  source: {branch: v1.24.3}
  image: {repository: registry.example.com/s, tag: v1}
  configuration: {preset: spread}
  replicas: 3
`

func TestSchedulerIsDeployedAgainFromItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pmk-sched.yaml")
	if err := os.WriteFile(file, []byte(describedScheduler), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		flags    Flags
		recorded []string
		preset   string
		replicas int
		want     []string
	}{
		"the recorded file":         {Flags{Name: "n"}, []string{"--replicas=2", "--file=" + file}, "spread", 2, []string{"--replicas=2", "--file=" + file}},
		"its new place":             {Flags{File: file}, []string{"--replicas=2", "--file=gone.yaml"}, "spread", 2, []string{"--replicas=2", "--file=" + file}},
		"a file in place of flags":  {Flags{File: file}, []string{"--preset=binpack", "--replicas=2"}, "spread", 3, []string{"--file=" + file}},
		"the file without anything": {Flags{File: file}, nil, "spread", 3, []string{"--file=" + file}},
	} {
		o, _, err := again(t, tt.flags, Deployed{Flags: tt.recorded})
		if err != nil || o.Preset != tt.preset || o.Replicas != tt.replicas || o.Branch != "v1.25.4" {
			t.Errorf("%s: preset %s, %d replicas, branch %s, %v", name, o.Preset, o.Replicas, o.Branch, err)
		}
		if diff := cmp.Diff(tt.want, o.Flags); diff != "" {
			t.Errorf("%s: recorded flags (-want +got):\n%s", name, diff)
		}
	}
	s, err := Read(Flags{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if pinned := strings.Join(s.WithImage("registry.example.com/s:v1.25.4").Pinned("v1.25.4"), "\n"); !strings.Contains(pinned, "spec.source.branch of "+file+" is v1.24.3") ||
		!strings.Contains(pinned, "spec.image.tag of "+file+" is v1:") {
		t.Errorf("the warnings are\n%s", pinned)
	}
}

func TestUpgradeSaysWhatItNeeds(t *testing.T) {
	for text, flags := range map[string][]string{
		"scheduler n was deployed with -f gone.yaml":             {"--file=gone.yaml"},
		"scheduler n has the invalid recorded flag --replicas=x": {"--replicas=x"},
		"was deployed with the unknown flag --future":            {"--future=1"},
	} {
		_, _, err := again(t, Flags{Name: "n"}, Deployed{Flags: flags})
		if !problem.IsInvalid(err) || !strings.Contains(err.Error(), text) || len(problem.Hints(err)) == 0 {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A ServiceAccount stays one where a control-plane node upgrades the scheduler.
func TestCredentialsThatWereChosenAreKept(t *testing.T) {
	o, _, err := again(t, Flags{Name: "n"}, Deployed{Credentials: deploy.CredentialsServiceAccount})
	if err != nil || o.Credentials != deploy.CredentialsServiceAccount || len(o.Flags) > 0 {
		t.Errorf("credentials %q, flags %q, %v", o.Credentials, o.Flags, err)
	}
}
