package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

const privateKey = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n"

// scheduler returns a scheduler as deployed on a PMK control-plane node.
func scheduler(t *testing.T, release, mode string) manifest.Scheduler {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := profiles.Render(profiles.Request{
		Release: r, SchedulerName: "my-scheduler", Kubeconfig: manifest.KubeconfigPath("my-scheduler"), Preset: "spread",
		LeaderElect: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Scheduler{
		Name: "my-scheduler", Namespace: "kube-system", Release: r, Image: "localhost/my-scheduler:" + release,
		Configuration: configuration, Credentials: credentials(mode),
		NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Port:         10260, Version: "v0.1.0+dirty",
	}
}

func credentials(mode string) manifest.Credentials {
	c := manifest.Credentials{Mode: mode, User: "system:kube-scheduler", Server: "https://localhost:443"}
	switch mode {
	case manifest.ModeNode, manifest.ModeNodeInline:
		c.CA, c.Cert, c.Key = []byte("ca\n"), []byte("certificate\n"), []byte(privateKey)
	case manifest.ModeHostPath:
		c.HostPath = "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml"
	case manifest.ModeServiceAccount:
		c = manifest.Credentials{Mode: mode}
	}
	return c
}

func objects(t *testing.T, s manifest.Scheduler) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Objects(s)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func deployment(t *testing.T, s manifest.Scheduler) *unstructured.Unstructured {
	t.Helper()
	all := objects(t, s)
	return all[len(all)-1]
}

// field returns a field of an object by its path; numbers index lists.
func field(t *testing.T, object *unstructured.Unstructured, path ...any) any {
	t.Helper()
	var value any = object.Object
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := value.(map[string]any)
			if !ok {
				t.Fatalf("%v: %v is not a mapping", path, value)
			}
			value = m[step]
		case int:
			l, ok := value.([]any)
			if !ok || step >= len(l) {
				t.Fatalf("%v: %v has no element %d", path, value, step)
			}
			value = l[step]
		}
	}
	return value
}

func TestOpenShiftAssignsTheUserOfThePod(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeServiceAccount)
	s.AssignedUser = true
	for _, object := range objects(t, s) {
		if object.GetKind() != "Deployment" {
			continue
		}
		got, _, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec", "securityContext")
		if diff := cmp.Diff(map[string]any{"runAsNonRoot": true}, got); diff != "" {
			t.Errorf("security context of the pod (-want +got):\n%s", diff)
		}
	}
}

// Objects of releases differ in the configuration only, whatever the credentials are.
func TestObjectsMatchTheGoldenFiles(t *testing.T) {
	type scene struct{ mode, release string }
	scenes := []scene{{manifest.ModeNode, "v1.20.15"}, {manifest.ModeNode, "v1.36.3"}}
	for _, mode := range manifest.Modes() {
		scenes = append(scenes, scene{mode, "v1.24.3"})
	}
	for _, s := range scenes {
		t.Run(s.mode+"-"+s.release, func(t *testing.T) {
			got, err := manifest.YAML(objects(t, scheduler(t, s.release, s.mode)), manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/"+s.mode+"-"+s.release+".yaml", got)
		})
	}
}

func TestObjectsAreInApplyOrder(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.PluginRules = []rbacv1.PolicyRule{{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"nodes"},
		Verbs: []string{"list"}}}
	var got []string
	for _, object := range objects(t, s) {
		name := object.GetName()
		if i := strings.LastIndexByte(name, '-'); len(name)-i == 11 && object.GetKind() != "Deployment" {
			name = name[:i] + "-HASH"
		}
		got = append(got, object.GetKind()+" "+name)
	}
	want := []string{
		"ServiceAccount my-scheduler",
		"ClusterRoleBinding my-scheduler-as-kube-scheduler",
		"ClusterRoleBinding my-scheduler-as-volume-scheduler",
		"RoleBinding my-scheduler-extension-apiserver-authentication-reader",
		"Role my-scheduler-lease",
		"RoleBinding my-scheduler-lease",
		"ClusterRole my-scheduler-plugins",
		"ClusterRoleBinding my-scheduler-plugins",
		"Secret my-scheduler-credentials-HASH",
		"ConfigMap kubeconfig-for-my-scheduler-HASH",
		"ConfigMap my-scheduler-config-HASH",
		"Deployment my-scheduler",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestEveryObjectHasLabels(t *testing.T) {
	for _, object := range objects(t, scheduler(t, "v1.24.3", manifest.ModeNode)) {
		labels := object.GetLabels()
		for key, want := range map[string]string{
			ownership.LabelManagedBy: "pmk-sched", ownership.LabelInstance: "my-scheduler",
			ownership.LabelRelease: "v1.24.3", ownership.LabelVersion: "v0.1.0-dirty",
		} {
			if labels[key] != want {
				t.Errorf("%s %s: label %s is %q, want %q", object.GetKind(), object.GetName(), key, labels[key], want)
			}
		}
	}
}

func TestHashedNamesDependOnContentOnly(t *testing.T) {
	a, b := scheduler(t, "v1.24.3", manifest.ModeNode), scheduler(t, "v1.24.3", manifest.ModeNode)
	b.Version, b.Image = "v0.2.0", "localhost/other:1"
	names := func(s manifest.Scheduler) (names []string) {
		for _, object := range objects(t, s) {
			names = append(names, object.GetName())
		}
		return names
	}
	if diff := cmp.Diff(names(a), names(b)); diff != "" {
		t.Errorf("names changed although the content did not (-a +b):\n%s", diff)
	}
	b.Credentials.Key = []byte("another key\n")
	if cmp.Equal(names(a), names(b)) {
		t.Error("another key did not change the name of the Secret")
	}
}

func TestSelectorMatchesOwnPodsOnly(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	one := field(t, deployment(t, s), "spec", "selector", "matchLabels")
	s.Name = "other"
	s.Configuration = &profiles.Rendered{YAML: []byte("kubeconfig: " + manifest.KubeconfigPath("other"))}
	two := field(t, deployment(t, s), "spec", "selector", "matchLabels")
	if cmp.Equal(one, two) {
		t.Errorf("two schedulers select by the same labels %v", one)
	}
}

func TestHostNetworkOnlyIfAPIServerNeedsIt(t *testing.T) {
	cases := []struct {
		mode, server string
		want         any
	}{
		{manifest.ModeNode, "https://localhost:443", true},
		{manifest.ModeNode, "https://127.0.0.1:6443", true},
		{manifest.ModeNode, "https://[::1]:6443", true},
		{manifest.ModeNode, "https://control-plane.minikube.internal:8443", true},
		{manifest.ModeNode, "https://10.0.0.5:6443", nil},
		{manifest.ModeHostPath, "", true},
		{manifest.ModeServiceAccount, "", nil},
		{manifest.ModeServiceAccount, "https://kubernetes.default.svc.cluster.local:443", nil},
		{manifest.ModeServiceAccount, "https://localhost:443", true},
	}
	for _, c := range cases {
		t.Run(c.mode+" "+c.server, func(t *testing.T) {
			s := scheduler(t, "v1.24.3", c.mode)
			s.Credentials.Server = c.server
			if got := field(t, deployment(t, s), "spec", "template", "spec", "hostNetwork"); got != c.want {
				t.Errorf("hostNetwork is %v, want %v", got, c.want)
			}
		})
	}
}

func TestLoopbackBindAddressOnlyOnHostNetwork(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Configuration.Args = []string{"--bind-address=127.0.0.1"}
	container := func(s manifest.Scheduler) (host any, command string) {
		d := deployment(t, s)
		host = field(t, d, "spec", "template", "spec", "containers", 0, "readinessProbe", "httpGet", "host")
		return host, fmt.Sprint(field(t, d, "spec", "template", "spec", "containers", 0, "command"))
	}
	if host, command := container(s); host != "127.0.0.1" || !strings.Contains(command, "--bind-address=127.0.0.1") {
		t.Errorf("host network: probe at %v, command %s", host, command)
	}
	s.Credentials = credentials(manifest.ModeServiceAccount)
	if host, command := container(s); host != nil || strings.Contains(command, "--bind-address") {
		t.Errorf("pod network: probe at %v, command %s", host, command)
	}
}

func TestNodeSelectorWithoutValueMatchesKey(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.NodeSelector = map[string]string{"node-role.kubernetes.io/control-plane": "", "a": "true"}
	got := field(t, deployment(t, s), "spec", "template", "spec", "affinity", "nodeAffinity",
		"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", 0, "matchExpressions")
	want := []any{
		map[string]any{"key": "a", "operator": "In", "values": []any{"true"}},
		map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("match expressions (-want +got):\n%s", diff)
	}
}

func TestReplicasAreKeptApart(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Replicas = 3
	affinity := []any{"spec", "template", "spec", "affinity", "podAntiAffinity"}
	if got := field(t, deployment(t, s), append(affinity, "requiredDuringSchedulingIgnoredDuringExecution", 0,
		"topologyKey")...); got != corev1.LabelHostname {
		t.Errorf("host network: required anti-affinity by %v, want hostname", got)
	}
	s.Credentials = credentials(manifest.ModeServiceAccount)
	if got := field(t, deployment(t, s),
		append(affinity, "preferredDuringSchedulingIgnoredDuringExecution", 0, "weight")...); got != int64(100) {
		t.Errorf("pod network: preferred anti-affinity with weight %v", got)
	}
}

func TestArgs(t *testing.T) {
	cases := []struct {
		name, release string
		args          []string
		want          string
	}{
		{"flag replaces default", "v1.24.3", []string{"--v=5"}, "--v=5"},
		{"short form replaces default", "v1.24.3", []string{"-v=5"}, "-v=5"},
		{"new flag is added", "v1.24.3", []string{"--profiling=false"}, "--v=2 --profiling=false"},
		{"hyphens are written", "v1.24.3", []string{"--pod_max_in_unschedulable_pods_duration=60s", "--alsologtostderr"},
			"--v=2 --pod-max-in-unschedulable-pods-duration=60s --alsologtostderr"},
		{"gate with underscores", "v1.31.0", []string{"--feature_gates=A=true"},
			"--v=2 --feature-gates=CoordinatedLeaderElection=false,A=true"},
		{"value with underscores", "v1.24.3", []string{"--vmodule=a_b=1"}, "--v=2 --vmodule=a_b=1"},
		{"flag of the image", "v1.24.3", []string{"--debug-scores=3"}, "--v=2 --debug-scores=3"},
		{"gate before 1.31", "v1.30.14", []string{"--feature-gates=A=true"}, "--v=2 --feature-gates=A=true"},
		{"gates are joined from 1.31", "v1.31.0", []string{
			"--feature-gates=A=true"}, "--v=2 --feature-gates=CoordinatedLeaderElection=false,A=true"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := scheduler(t, c.release, manifest.ModeNode)
			s.Args = c.args
			var command []string
			for _, arg := range field(t, deployment(t, s), "spec", "template", "spec", "containers", 0, "command").([]any) {
				command = append(command, arg.(string))
			}
			if got := strings.Join(command[5:], " "); got != c.want {
				t.Errorf("flags end with %q, want %q", got, c.want)
			}
		})
	}
}

func TestObjectsDoesNotChangeItsInput(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	before := fmt.Sprintf("%+v", s)
	first, second := objects(t, s), objects(t, s)
	if after := fmt.Sprintf("%+v", s); after != before {
		t.Errorf("the scheduler changed from %s to %s", before, after)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}
