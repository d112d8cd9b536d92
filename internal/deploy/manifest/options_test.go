package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// memory returns resources with a memory limit only.
func memory(limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
}

func TestOptionsOfASchedulerMatchTheGoldenFiles(t *testing.T) {
	spare := []corev1.Toleration{{Key: "spare", Operator: corev1.TolerationOpExists}}
	for name, c := range map[string]struct {
		mode   string
		change func(*manifest.Scheduler)
	}{
		"all": {manifest.ModeNode, func(s *manifest.Scheduler) {
			s.Namespace, s.Version, s.Port, s.Credentials.Server = "", "", 0, "https://10.0.0.1:6443"
			s.PullPolicy, s.SignedBy, s.Restarted = corev1.PullAlways, "sha256:12", "2026-01-02T03:04:05Z"
			s.Architectures, s.Tolerations, s.PriorityClass = []string{"arm64"}, spare, "mine"
			s.Replicas, s.Resources, s.Credentials.ServerName = 2, memory("1Gi"), "api.example.com"
			s.Args = []string{"--bind-address=192.0.2.1", "--profiling=false"}
			s.NoAuthenticationReader, s.Configuration.LeaseNamespace = true, "leases"
			s.PluginRules = []rbacv1.PolicyRule{may("patch", "", "pods")}
		}},
		"sidecars": {manifest.ModeServiceAccount, func(s *manifest.Scheduler) {
			s.AssignedUser, s.NodeSelector, s.PriorityClass = true, nil, v1alpha1.NoPriorityClass
			s.Tolerations, s.Replicas = []corev1.Toleration{}, 2
			s.Configuration.Args, s.Args = []string{"--bind-address=127.0.0.1"}, []string{"--bind-address=0.0.0.0"}
			s.Wirings = wirings()
			s.Wirings[0].Sidecar.PullPolicy, s.Wirings[0].Sidecar.Resources = corev1.PullNever, memory("100")
			s.Wirings = append(s.Wirings, manifest.Wiring{Extender: profiles.Extender{Name: "free"},
				Sidecar: &manifest.Sidecar{
					Image: "localhost/free:v1", Policies: []manifest.Policy{{Name: "timestamp"}}, Port: 12260,
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler(t, "v1.36.3", c.mode)
			c.change(&s)
			got, err := manifest.YAML(objects(t, s), manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/options-"+name+".yaml", got)
		})
	}
}

func TestOptionsOfAnExtenderMatchTheGoldenFile(t *testing.T) {
	e := extender(t, "v1.36.3")
	e.Namespace, e.Version, e.PullPolicy, e.PriorityClass = "team", "", corev1.PullAlways, "mine"
	e.Call.BindVerb, e.Call.PreemptVerb, e.Anonymous, e.Rules = "bind", "preempt", true, nil
	e.Nodes, e.Restarted, e.Replicas = []string{"n1"}, "2026-01-02T03:04:05Z", 1
	e.Architectures, e.NodeSelector = []string{"arm64"}, map[string]string{"disk": "ssd"}
	e.Tolerations, e.Resources = []corev1.Toleration{{Key: "spare", Operator: corev1.TolerationOpExists}}, memory("1Gi")
	objects, err := manifest.ExtenderObjects(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/options-extender.yaml", got)
}

func TestVersionIsALabelValue(t *testing.T) {
	const digits = "0123456789"
	sixty := digits + digits + digits + digits + digits + digits
	for version, want := range map[string]any{
		"": nil, "+~+": nil, "v1.2.3": "v1.2.3", "v1_2-3": "v1_2-3", "v0.1.0+dirty": "v0.1.0-dirty", "-+a+.": "a", "-b": "b",
		"a/0:9@A[Z`a{z": "a-0-9-A-Z-a-z", "ä0": "0",
		sixty + "123": sixty + "123", sixty + "1234": sixty + "123", sixty + "1++4": sixty + "1",
	} {
		s := scheduler(t, "v1.24.3", manifest.ModeNode)
		s.Version = version
		for _, o := range objects(t, s) {
			if got := field(t, o, "metadata", "labels").(map[string]any)[ownership.LabelVersion]; got != want {
				t.Errorf("%q: %s %s has %v, want %v", version, o.GetKind(), o.GetName(), got, want)
			}
		}
	}
}

func TestSidecarPorts(t *testing.T) {
	type port struct{ secure, n int }
	for given, want := range map[port]int32{
		{10260, 0}: 11260, {10260, 1}: 12260, {64535, 0}: 65535, {64536, 0}: 63536, {63536, 1}: 61536, {1024, 0}: 2024,
		{65535, 63}: 1535, {65024, 63}: 1024, {65023, 63}: 0,
	} {
		got, err := manifest.SidecarPort(given.secure, given.n)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%+v: got %d, %v; want %d", given, got, err, want)
		}
	}
	const want = "no port for sidecar 65 of a scheduler at port 65500"
	if _, err := manifest.SidecarPort(65500, 64); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestObjectsHaveNoNulls(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeServiceAccount)
	s.PluginRules = []rbacv1.PolicyRule{{Resources: []string{"pods"}}, {Resources: []string{"nodes"}}}
	for _, o := range objects(t, s) {
		if o.GetKind() == "ClusterRole" {
			want := []any{map[string]any{"resources": []any{"pods"}}, map[string]any{"resources": []any{"nodes"}}}
			if diff := cmp.Diff(want, o.Object["rules"]); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Error("there is no ClusterRole")
}

func TestCertificatesAreDescribedByTheirSize(t *testing.T) {
	c := manifest.ExtenderCertificates{CA: []byte("ca"), Server: []byte("one"), Client: []byte("other"),
		CAKey: []byte("secret"), ServerKey: []byte("secret"), ClientKey: []byte("secret")}
	if got := c.String(); got != "certificates of 10 bytes" || c.GoString() != got {
		t.Errorf("got %q and %q", got, c.GoString())
	}
}
