package manifest_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func extender(t *testing.T, release string) manifest.Extender {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	cached := true
	return manifest.Extender{
		Name: "my-extender", Release: r, Image: "localhost/my-extender:v1", Version: "v0.1.0",
		Call: profiles.Extender{FilterVerb: "filter", PrioritizeVerb: "prioritize", NodeCacheCapable: &cached},
		Policies: []manifest.Policy{
			{Name: "loadaware", Weight: 2, Args: map[string]any{
				"prometheus": map[string]any{"url": "http://prometheus.monitoring:9090"}}},
			{Name: "timestamp"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}},
		Certificates: manifest.ExtenderCertificates{
			CA: []byte("ca\n"), CAKey: []byte("ca key\n"), Server: []byte("server\n"), ServerKey: []byte("server key\n"),
			Client: []byte("client\n"), ClientKey: []byte("client key\n"),
		},
	}
}

// Releases differ in the API version of the PodDisruptionBudget.
func TestExtenderObjectsMatchTheGoldenFiles(t *testing.T) {
	anonymous := func(e *manifest.Extender) { e.Anonymous = true }
	for _, tc := range []struct {
		form, release string
		change        func(*manifest.Extender)
	}{
		{"extender", "v1.20.15", anonymous},
		{"extender", "v1.24.3", anonymous},
		{"extender-bind", "v1.24.3", func(e *manifest.Extender) { e.Call.BindVerb = "bind" }},
	} {
		t.Run(tc.form+"-"+tc.release, func(t *testing.T) {
			e := extender(t, tc.release)
			tc.change(&e)
			objects, err := manifest.ExtenderObjects(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := manifest.YAML(objects, manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/"+tc.form+"-"+tc.release+".yaml", got)
		})
	}
}

func wirings() []manifest.Wiring {
	e := extender(&testing.T{}, "v1.24.3")
	return []manifest.Wiring{
		{Extender: profiles.Extender{
			Name: "near", URLPrefix: manifest.SidecarURL(11260), FilterVerb: "filter", PrioritizeVerb: "prioritize",
			NodeCacheCapable: e.Call.NodeCacheCapable},
			Sidecar: &manifest.Sidecar{
				Image: "localhost/my-extender:v1", Policies: e.Policies, Rules: e.Rules, Port: 11260,
			}},
		{Extender: profiles.Extender{
			Name: "far", URLPrefix: "https://10.96.0.7", NodeCacheCapable: e.Call.NodeCacheCapable},
			ClientSecret: manifest.ExtenderClient("far")},
	}
}

func TestSchedulerWithExtendersMatchesTheGoldenFiles(t *testing.T) {
	for _, mode := range []string{manifest.ModeNode, manifest.ModeServiceAccount} {
		t.Run(mode, func(t *testing.T) {
			s := scheduler(t, "v1.24.3", mode)
			s.Wirings = wirings()
			got, err := manifest.YAML(objects(t, s), manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/wired-"+mode+"-v1.24.3.yaml", got)
		})
	}
}

func TestSidecarsOfADeployment(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Wirings = wirings()
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment(t, s).Object, &d); err != nil {
		t.Fatal(err)
	}
	if found := manifest.Sidecars(&d); !slices.Equal(found, []string{"near"}) {
		t.Errorf("sidecars %q, want near", found)
	}
}

func TestInvalidExtenders(t *testing.T) {
	cases := map[string]struct {
		change func(*manifest.Extender)
		want   string
	}{
		"no image":  {func(e *manifest.Extender) { e.Image = "" }, "has no image"},
		"no policy": {func(e *manifest.Extender) { e.Policies = nil }, "has no policy"},
		"duplicate policy": {func(e *manifest.Extender) { e.Policies = append(e.Policies, e.Policies[0]) },
			"duplicate policy loadaware"},
		"weight":          {func(e *manifest.Extender) { e.Policies[0].Weight = 101 }, "invalid weight 101"},
		"negative weight": {func(e *manifest.Extender) { e.Policies[0].Weight = -1 }, "invalid weight -1"},
		"no verb":         {func(e *manifest.Extender) { e.Call = profiles.Extender{} }, "has no verb"},
		"nameless policy": {func(e *manifest.Extender) { e.Policies[0].Name = "" }, "has no name"},
		"replicas":        {func(e *manifest.Extender) { e.Replicas = -1 }, "-1 replicas"},
		"name":            {func(e *manifest.Extender) { e.Name = "My_Extender" }, "not a DNS label"},
		"reserved name":   {func(e *manifest.Extender) { e.Name = "kube-scheduler" }, "used by the cluster"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := extender(t, "v1.24.3")
			c.change(&e)
			_, err := manifest.ExtenderObjects(e)
			if !problem.IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestExtenderNeedsAllItsCertificates(t *testing.T) {
	for i := range 6 {
		e := extender(t, "v1.24.3")
		c := &e.Certificates
		*[]*[]byte{&c.CA, &c.CAKey, &c.Server, &c.ServerKey, &c.Client, &c.ClientKey}[i] = nil
		if objects, err := manifest.ExtenderObjects(e); err == nil || objects != nil {
			t.Errorf("without part %d: got %d objects, %v", i, len(objects), err)
		}
	}
}

func TestArgumentsOfAPolicyMustBeData(t *testing.T) {
	e := extender(t, "v1.24.3")
	e.Policies[0].Args = map[string]any{"a": func() {}}
	if objects, err := manifest.ExtenderObjects(e); err == nil || objects != nil {
		t.Errorf("extender: got %d objects, %v", len(objects), err)
	}
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Wirings = wirings()
	s.Wirings[0].Sidecar.Policies = e.Policies
	if objects, err := manifest.Objects(s); err == nil || objects != nil {
		t.Errorf("sidecar: got %d objects, %v", len(objects), err)
	}
}

func TestSingleReplicaHasNoPodDisruptionBudget(t *testing.T) {
	e := extender(t, "v1.24.3")
	e.Replicas, e.Policies[0].Weight = 1, 100
	objects, err := manifest.ExtenderObjects(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "PodDisruptionBudget" {
			t.Error("a budget for a single pod blocks draining its node")
		}
	}
}

func TestSidecarPortsAreUnique(t *testing.T) {
	seen := map[int32]bool{}
	for secure := 10260; secure < 10300; secure++ {
		for n := range 3 {
			port, err := manifest.SidecarPort(secure, n)
			if err != nil || seen[port] {
				t.Errorf("sidecar %d of the scheduler at %d: port %d, %v", n, secure, port, err)
			}
			seen[port] = true
		}
	}
	for _, secure := range []int{1024, 64999, 65535} {
		if port, err := manifest.SidecarPort(secure, 0); err != nil || port < 1024 || int(port) == secure {
			t.Errorf("sidecar port for secure port %d: %d, %v", secure, port, err)
		}
	}
}

func TestInvalidNameOfAnExtenderIsRefused(t *testing.T) {
	s := scheduler(t, "v1.24.3", manifest.ModeNode)
	s.Wirings = wirings()
	s.Wirings[0].Extender.Name = "Not A Label"
	if _, err := manifest.Objects(s); err == nil {
		t.Error("no error for an invalid extender name")
	}
}
