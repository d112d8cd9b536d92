package spec

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/versions"
)

const describedScheduler = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: n}
spec:
  source:
    branch: v1.24.3
    plugins:
    - builtin: timestamp
      weight: 3
      args: {second: 2, first: 1} # in this order
    - path: plugins/mine
      enable: []
  image: {repository: registry.example.com/s, tag: v1, base: busybox:1}
  configuration: {file: own.yaml}
  extenders:
  - {name: theirs, urlPrefix: "https://theirs.example.com", filterVerb: filter, ignorable: true, tlsConfig: {ca: ca.pem, certFile: cert.pem, keyFile: key.pem}}
  - {name: mine, ignorable: false, httpTimeout: 2s, policies: [{name: loadaware, args: {n: 1000000}}]}
  replicas: 3
  resources: {limits: {memory: 1536Mi}}
  rbac: {rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
`

// described writes the file and the files that it names.
func described(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "plugins/mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	client := pair(t)
	for name, text := range map[string]string{
		"plugins/go.mod":       "module example.com/plugins\n\ngo 1.21\n",
		"plugins/mine/mine.go": "package mine\n\nconst Name = \"Mine\"\n",
		"pmk-sched.yaml":       describedScheduler, "own.yaml": "# mine\nkind: KubeSchedulerConfiguration\n",
		"ca.pem":   "-----BEGIN CERTIFICATE-----\nQ0E=\n-----END CERTIFICATE-----\n",
		"cert.pem": string(client.Cert), "key.pem": string(client.Key),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "pmk-sched.yaml")
}

// pair returns a certificate and its key.
func pair(t *testing.T) certificates.Pair {
	t.Helper()
	made, err := certificates.NewAuthority(x509.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Pair
}

// deployed returns the input of the plan of a command.
func deployed(t *testing.T, f Flags) (*v1alpha1.CustomScheduler, deploy.Facts) {
	t.Helper()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	request, facts, err := s.Scheduler()
	if err != nil {
		t.Fatal(err)
	}
	return request, facts
}

// again returns the input of the plan of an upgrade to v1.25.4 with the given flags.
func again(t *testing.T, f Flags, before deploy.Installed) (*v1alpha1.CustomScheduler, deploy.Facts) {
	t.Helper()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Again(before, "v1.25.4", false); err != nil {
		t.Fatal(err)
	}
	request, facts, err := s.WithImage("localhost/s:v1.25.4").Scheduler()
	if err != nil {
		t.Fatal(err)
	}
	return request, facts
}

// The file, and the files that it names, may be gone.
func TestRecordedRequestNeedsNoFile(t *testing.T) {
	file := described(t)
	want, first := deployed(t, Flags{File: file, NodeSelector: []string{"pool=a"}, Lossy: true})
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	got, second := again(t, Flags{Name: "n", CacheDir: t.TempDir()}, deploy.Installed{Request: want.DeepCopy()})
	if diff := cmp.Diff(first, second,
		cmpopts.IgnoreFields(deploy.Facts{}, "Now", "Branch", "Image", "Recorded")); diff != "" {
		t.Errorf("facts (-first +second):\n%s", diff)
	}
	if _, configuration, _ := deploy.Configuration(got); string(configuration) !=
		"# mine\nkind: KubeSchedulerConfiguration\n" || second.Branch != "v1.25.4" || second.Image != "localhost/s:v1.25.4" {
		t.Errorf("configuration %q, branch %s, image %s", configuration, second.Branch, second.Image)
	}
	if _, clients, err := deploy.CalledExtenders(got); err != nil ||
		!strings.Contains(string(clients["theirs"].Key), "PRIVATE KEY") {
		t.Errorf("the key of the client certificate is lost: %v", err)
	}
	want.Spec.Image.Reference = "localhost/s:v1.25.4"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request that is recorded again (-want +got):\n%s", diff)
	}
}

// A revision, which others may write, grants nothing without a confirmation.
func TestPermissionsOfARequestOutOfAClusterAreConfirmed(t *testing.T) {
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"get"}}}
	file := described(t)
	for name, tc := range map[string]struct {
		flags  Flags
		before deploy.Installed
		want   bool
	}{
		"a revision":                 {Flags{Name: "n"}, deploy.Installed{Request: recorded}, true},
		"a file of the user":         {Flags{File: file}, deploy.Installed{Request: recorded}, false},
		"a revision without request": {Flags{Name: "n"}, deploy.Installed{}, false},
	} {
		if _, facts := again(t, tc.flags, tc.before); facts.Recorded != tc.want {
			t.Errorf("%s: got %t, want %t", name, facts.Recorded, tc.want)
		}
	}
	s, err := Read(Flags{Name: "n", Image: "localhost/s:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err = s.Keep(deploy.Installed{Request: recorded}); err != nil {
		t.Fatal(err)
	}
	if _, facts, err := s.Scheduler(); err != nil || !facts.Recorded {
		t.Errorf("kept settings: %t, %v", facts.Recorded, err)
	}
	object := recorded.DeepCopy()
	object.Name, object.Spec.Image.Reference = "n", "localhost/s:v1"
	if s, err = Of(Flags{Version: "v9", CacheDir: t.TempDir()}, object, "an object"); err != nil {
		t.Fatal(err)
	}
	if _, facts, err := s.Scheduler(); err != nil || facts.Recorded {
		t.Errorf("an object of the controller: %t, %v", facts.Recorded, err)
	}
}

func TestRecordedPluginsAreUnpackedOnAnotherMachine(t *testing.T) {
	file := described(t)
	recorded, _ := deployed(t, Flags{File: file})
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	s, err := Read(Flags{Name: "n", CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds the sources of the first
		again, err := s.Again(deploy.Installed{Request: recorded}, "v1.25.4", false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := again.Build(BuildFlags{Tag: "localhost/s:v1"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Plugins) != 2 || r.Plugins[0].Builtin != "timestamp" ||
			!strings.HasSuffix(r.Plugins[1].Dir, "/module/mine") {
			t.Fatalf("plugins %+v", r.Plugins)
		}
		text, err := os.ReadFile(filepath.Join(r.Plugins[1].Dir, "mine.go"))
		if err != nil || string(text) != "package mine\n\nconst Name = \"Mine\"\n" {
			t.Errorf("got %q, %v", text, err)
		}
	}
}

func TestFlagsAndFilesOfAnUpgradeWinOverTheRecordedRequest(t *testing.T) {
	file := described(t)
	two := 2
	recorded, _ := deployed(t, Flags{Name: "n", Image: "localhost/s:v1", Preset: "binpack", Replicas: &two})
	for name, tt := range map[string]struct {
		flags    Flags
		preset   string
		replicas v1alpha1.AutoInt
	}{
		"the record": {Flags{Name: "n"}, "binpack", 2},
		"a flag":     {Flags{Name: "n", Preset: "spread"}, "spread", 2},
		"a file":     {Flags{File: file, CacheDir: t.TempDir()}, "", 3},
	} {
		got, _ := again(t, tt.flags, deploy.Installed{Request: recorded})
		if preset, _, _ := deploy.Configuration(got); preset != tt.preset || got.Spec.Replicas != tt.replicas {
			t.Errorf("%s: preset %q, %d replicas", name, preset, got.Spec.Replicas)
		}
	}
}

func TestPinnedFieldsOfAFileAreReported(t *testing.T) {
	file := described(t)
	recorded, _ := deployed(t, Flags{File: file})
	for name, f := range map[string]Flags{"the file": {File: file}, "the recorded request": {Name: "n"}} {
		s, err := Read(f)
		if err == nil {
			s, err = s.Again(deploy.Installed{Request: recorded}, "v1.25.4", false)
		}
		if err != nil {
			t.Fatal(err)
		}
		pinned := strings.Join(s.WithImage("registry.example.com/s:v1.25.4").Pinned("v1.25.4"), "\n")
		if !strings.Contains(pinned, "spec.source.branch of "+file+" is v1.24.3") ||
			!strings.Contains(pinned, "spec.image.tag of "+file+" is v1:") {
			t.Errorf("%s: the warnings are\n%s", name, pinned)
		}
	}
}

func TestPolicyBecomesAConfigurationWhereNoReleaseReadsIt(t *testing.T) {
	on := true
	config := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(config, []byte("kind: Policy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded, _ := deployed(t, Flags{Name: "n", Image: "i", Config: config, PolicyConfigMap: &on})
	got, _ := again(t, Flags{Name: "n"}, deploy.Installed{Request: recorded})
	if c := got.Spec.Configuration; c.PolicyConfigMap || c.Inline != "kind: Policy\n" {
		t.Errorf("PolicyConfigMap %t, configuration %q", c.PolicyConfigMap, c.Inline)
	}
}

// A ServiceAccount stays one where a control-plane node upgrades the scheduler, and is not recorded
// as a choice of the user.
func TestCredentialsThatWereChosenAreKept(t *testing.T) {
	recorded, _ := deployed(t, Flags{Name: "n", Image: "i"})
	got, facts := again(t, Flags{Name: "n"},
		deploy.Installed{Request: recorded, Credentials: deploy.CredentialsServiceAccount})
	if facts.Credentials != deploy.CredentialsServiceAccount || got.Spec.Credentials != "" {
		t.Errorf("credentials %q, recorded %q", facts.Credentials, got.Spec.Credentials)
	}
	recorded, _ = deployed(t, Flags{Name: "n", Image: "i", Credentials: deploy.CredentialsHostPath})
	got, facts = again(t, Flags{Name: "n"}, deploy.Installed{Request: recorded, Credentials: deploy.CredentialsHostPath})
	if facts.Credentials != deploy.CredentialsHostPath || got.Spec.Credentials != deploy.CredentialsHostPath {
		t.Errorf("credentials %q, recorded %q", facts.Credentials, got.Spec.Credentials)
	}
}

func TestFitGatesLeavesOutGatesThatAReleaseDoesNotHave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pmk-sched.yaml")
	text := "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: n}\nspec:\n  args:\n" +
		"  - --feature-gates=GangScheduling=true\n  - --v=4\n  - --feature_gates=GangScheduling=true,GenericWorkload=true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Read(Flags{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[int][]string{
		36: {"--feature-gates=GangScheduling=true", "--v=4", "--feature_gates=GangScheduling=true,GenericWorkload=true"},
		37: {"--v=4", "--feature-gates=GenericWorkload=true"},
	} {
		fitting, notes, err := s.FitGates(versions.Release{Major: 1, Minor: minor})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fitting.request.Spec.Args); diff != "" || (len(notes) > 0) != (minor == 37) {
			t.Errorf("1.%d: notes %q (-want +got):\n%s", minor, notes, diff)
		}
	}
	if len(s.request.Spec.Args) != 3 {
		t.Errorf("the spec is changed: %q", s.request.Spec.Args)
	}
}

func TestUnknownPresetIsRefusedWhenTheFlagsAreRead(t *testing.T) {
	_, err := Read(Flags{Name: "n", Preset: "bin-pack"})
	if err == nil || !strings.Contains(err.Error(), `unknown preset "bin-pack"`) {
		t.Errorf("got %v", err)
	}
}
