//go:build linux

package extender_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

func TestServiceFormIsDeployedWiredInAndTakenAwayAgain(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	before := w.state(t, "sched")

	out, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched"))
	if err != nil {
		t.Fatal(err)
	}
	service, err := w.kube.CoreV1().Services(w.ns).Get(t.Context(), "ext", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://" + service.Spec.ClusterIP; out.Address != want {
		t.Errorf("address is %s, want the Service's, %s", out.Address, want)
	}
	ca, err := w.kube.CoreV1().Secrets(w.ns).Get(t.Context(), "ext-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	configuration := w.configuration(t, "sched")
	for _, want := range []string{
		"urlPrefix: https://" + service.Spec.ClusterIP + "\n", "enableHTTPS: true", "serverName: ext." + w.ns + ".svc",
		"caData: " + base64.StdEncoding.EncodeToString(ca.Data["tls.crt"]), "nodeCacheCapable: true", "ignorable: true",
		"httpTimeout: 1s", "type: MostAllocated",
	} {
		if !strings.Contains(configuration, want) {
			t.Errorf("the scheduler's configuration lacks %q:\n%s", want, configuration)
		}
	}
	budget, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(t.Context(), "ext", metav1.GetOptions{})
	if err != nil || budget.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("budget: %v, %v", budget, err)
	}

	deployed := w.state(t, "sched", "ext")
	again, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched"))
	if err != nil || again.Changes.Changed() {
		t.Errorf("the same again: %v\n%s", err, again.Changes)
	}
	if diff := cmp.Diff(deployed, w.state(t, "sched", "ext")); diff != "" {
		t.Errorf("the same again changed (-before +after):\n%s", diff)
	}

	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Fatal(err)
	}
	after := w.state(t, "sched")
	delete(after, "ConfigMap/"+configMapOf(after, before)) // kept for a revision that can be returned to
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the scheduler changed (-before +after):\n%s", diff)
	}
	if left := w.state(t, "ext"); len(left) > 0 {
		t.Errorf("left of the extender: %v", left)
	}
	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Errorf("uninstalled again: %v", err)
	}
}

// configMapOf is the configuration that is there and was not before: that with the extender.
func configMapOf(after, before map[string]any) string {
	for name := range after {
		if _, was := before[name]; !was && strings.HasPrefix(name, "ConfigMap/sched-config-") {
			return strings.TrimPrefix(name, "ConfigMap/")
		}
	}
	return ""
}

func TestWhatFailsIsUndone(t *testing.T) {
	t.Run("a new extender that is not steady", func(t *testing.T) {
		w := newWorld(t)
		w.scheduler(t, "sched")
		before := w.state(t, "sched")
		w.client.fails = notStable{"ext", "localhost/extender"}
		if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err == nil {
			t.Fatal("no error")
		}
		if diff := cmp.Diff(before, w.state(t, "sched", "ext")); diff != "" {
			t.Errorf("left (-before +after):\n%s", diff)
		}
	})
	t.Run("a scheduler that is not stable with it", func(t *testing.T) {
		w := newWorld(t)
		w.scheduler(t, "one")
		w.scheduler(t, "two")
		before := w.state(t, "one", "two")
		w.client.fails = notStable{"two", "localhost/extender"}
		o := w.options("ext")
		o.Sidecar = true
		if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, o, "one", "two")); err == nil {
			t.Fatal("no error")
		}
		after := w.state(t, "one", "two", "ext")
		for name := range after {
			if _, was := before[name]; !was && strings.HasPrefix(name, "ConfigMap/one-") {
				delete(after, name) // kept for a revision that can be rolled back to
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("something changed (-before +after):\n%s", diff)
		}
	})
	t.Run("a restart with an image that is not steady", func(t *testing.T) {
		w := newWorld(t)
		if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"))); err != nil {
			t.Fatal(err)
		}
		before := w.state(t, "ext")
		w.client.fails = notStable{"ext", "localhost/broken"}
		if _, err := extenders.Restart(t.Context(), w.deps,
			extenders.RestartOptions{Name: "ext", Namespace: w.ns, Image: "localhost/broken:v1"}); err == nil {
			t.Fatal("no error")
		}
		if diff := cmp.Diff(before, w.state(t, "ext")); diff != "" {
			t.Errorf("the extender changed (-before +after):\n%s", diff)
		}
		if _, err := extenders.Restart(t.Context(), w.deps,
			extenders.RestartOptions{Name: "ext", Namespace: w.ns, Image: "localhost/extender:v2"}); err != nil {
			t.Fatal(err)
		}
		if got := w.containers(t, "ext")["pmk-extender"]; got != "localhost/extender:v2" {
			t.Errorf("after a restart the image is %s", got)
		}
	})
}

func TestSidecarIsWiredInRestartedAndTakenOutAgain(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	before := w.state(t, "sched")
	o := w.options("ext")
	o.Sidecar = true
	out, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, o, "sched"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "http://127.0.0.1:11260"; out.Address != want ||
		!strings.Contains(w.configuration(t, "sched"), "urlPrefix: "+want+"\n") {
		t.Errorf("address is %s, want %s:\n%s", out.Address, want, w.configuration(t, "sched"))
	}
	if left := w.state(t, "ext"); len(left) > 0 {
		t.Errorf("objects were made for a sidecar: %v", left)
	}
	if _, err := extenders.Restart(t.Context(), w.deps,
		extenders.RestartOptions{Name: "ext", Namespace: w.ns, Image: "localhost/extender:v2"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"kube-scheduler": "localhost/scheduler:v1", "extender-ext": "localhost/extender:v2"}
	if diff := cmp.Diff(want, w.containers(t, "sched")); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}

	// The scheduler keeps its sidecar when it is deployed again.
	wired := w.wired(t, "sched")
	if len(wired) != 1 || !wired[0].Deployed.Added {
		t.Fatalf("wired: %v", wired)
	}
	w.scheduler(t, "sched", wired...)
	if diff := cmp.Diff(want, w.containers(t, "sched")); diff != "" {
		t.Errorf("deployed again (-want +got):\n%s", diff)
	}

	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Fatal(err)
	}
	after := w.state(t, "sched")
	if diff := cmp.Diff(before["Deployment/sched"], after["Deployment/sched"]); diff != "" {
		t.Errorf("the scheduler changed (-before +after):\n%s", diff)
	}
}

func TestBindNeedsTheClientCertificate(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	o := w.options("ext")
	o.FilterVerb, o.PrioritizeVerb, o.BindVerb = deploy.VerbFilter, deploy.VerbPrioritize, deploy.VerbBind
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, o, "sched")); err != nil {
		t.Fatal(err)
	}
	if text := w.configuration(t, "ext"); !strings.Contains(text, "verbs:\n- filter\n- prioritize\n- bind\n") ||
		strings.Contains(text, "anonymousVerbs") {
		t.Errorf("the extender serves:\n%s", text)
	}
	if text := w.configuration(t, "sched"); !strings.Contains(text, "certFile: "+manifest.ClientDir("ext")+"/tls.crt") {
		t.Errorf("the scheduler shows no certificate:\n%s", text)
	}
	d, err := w.kube.AppsV1().Deployments(w.ns).Get(t.Context(), "sched", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mounted bool
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		mounted = mounted || m.MountPath == manifest.ClientDir("ext")
	}
	if !mounted {
		t.Errorf("the certificate is not mounted: %v", d.Spec.Template.Spec.Containers[0].VolumeMounts)
	}
	role, err := w.kube.RbacV1().ClusterRoles().Get(t.Context(), "ext-extender", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if last := role.Rules[len(role.Rules)-1]; last.Resources[0] != "pods/binding" {
		t.Errorf("the extender may not bind: %v", role.Rules)
	}
	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Fatal(err)
	}
}

// A client certificate is required as soon as every scheduler that calls the extender presents one.
func TestAnExtenderRequiresTheCertificateThatItsSchedulersPresent(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	deploy := func(change func(*extenders.Deployment)) string {
		t.Helper()
		x := w.deployment(t, w.options("ext"), "sched")
		change(&x)
		if _, err := extenders.Deploy(t.Context(), w.deps, x); err != nil {
			t.Fatal(err)
		}
		text := w.configuration(t, "ext")
		if !strings.Contains(text, "clientCAFile: ") || !strings.Contains(text, "verbs:\n- filter\n- prioritize\n") {
			t.Errorf("the extender's configuration is\n%s", text)
		}
		if text := w.configuration(t, "sched"); !strings.Contains(text, "certFile: "+manifest.ClientDir("ext")+"/tls.crt") {
			t.Errorf("the scheduler presents no certificate:\n%s", text)
		}
		return text
	}
	const anonymous = "anonymousVerbs:\n  - filter\n  - prioritize\n"
	if text := deploy(func(*extenders.Deployment) {}); strings.Contains(text, "anonymousVerbs") {
		t.Errorf("no certificate is required:\n%s", text)
	}
	w.forgetClientSecret(t, "sched")
	if text := deploy(func(*extenders.Deployment) {}); !strings.Contains(text, anonymous) {
		t.Errorf("a scheduler that does not present one yet would be refused while it is rolled out:\n%s", text)
	}
	if text := deploy(func(*extenders.Deployment) {}); strings.Contains(text, "anonymousVerbs") {
		t.Errorf("no certificate is required, although all present one:\n%s", text)
	}
	if text := deploy(func(x *extenders.Deployment) { x.Options.Nodes = []string{"a-node"} }); !strings.Contains(text,
		anonymous) {
		t.Errorf("the default scheduler, which has none, would be refused:\n%s", text)
	}
}

// wired returns the extenders in the current revision of a scheduler.
func (w *world) wired(t *testing.T, name string) []v1alpha1.Extender {
	t.Helper()
	last, err := w.deps.Cluster.LastDeployed(t.Context(), w.ns, name)
	if err != nil {
		t.Fatal(err)
	}
	called, err := deploy.ExtendersOf(last)
	if err != nil {
		t.Fatal(err)
	}
	return called
}

// forgetClientSecret wires a scheduler as before there were client certificates for every extender.
func (w *world) forgetClientSecret(t *testing.T, name string) {
	t.Helper()
	wired := w.wired(t, name)
	if len(wired) != 1 {
		t.Fatalf("wired: %v", wired)
	}
	wired[0].Deployed.ClientSecret = ""
	w.scheduler(t, name, wired...)
}

func TestWhatCannotWorkIsRefusedAndNothingTouched(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	before := w.state(t, "sched", "ext")
	no := false
	cases := map[string]struct {
		change     func(*extenders.Options)
		schedulers []string
		want       string
	}{
		"the name of a scheduler": {func(o *extenders.Options) { o.Name = "sched" }, nil,
			"name sched is in use by a kube-scheduler"},
		"a scheduler that does not exist": {func(*extenders.Options) {}, []string{"none"},
			"scheduler none is not deployed"},
		"a sidecar of none": {func(o *extenders.Options) { o.Sidecar = true }, nil,
			"is a sidecar, and no scheduler calls it"},
		"a sidecar that binds": {func(o *extenders.Options) { o.Sidecar, o.BindVerb = true, "bind" },
			[]string{"sched"}, "is a sidecar, which must not bind pods"},
		"about its own pods, not ignorable": {func(o *extenders.Options) { o.Nodes, o.Ignorable = []string{"n"}, &no },
			nil, "own pods, and could not schedule them"},
		"bind for the default scheduler": {func(o *extenders.Options) { o.Nodes, o.BindVerb = []string{"n"}, "bind" },
			nil, "has no client certificate"},
		"nothing said about its absence": {func(o *extenders.Options) { o.Ignorable = nil }, nil,
			"ignorable is not set"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := w.options("ext")
			c.change(&o)
			_, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, o, c.schedulers...))
			var invalid interface{ Invalid() bool }
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one of the input with %q", err, c.want)
			}
		})
	}
	if _, err := extenders.Uninstall(t.Context(), w.deps, extenders.UninstallOptions{Name: "sched",
		Namespace: w.ns}); err == nil || !strings.Contains(err.Error(), "not an extender") {
		t.Errorf("a scheduler uninstalled as an extender: %v", err)
	}
	if diff := cmp.Diff(before, w.state(t, "sched", "ext")); diff != "" {
		t.Errorf("something was touched (-before +after):\n%s", diff)
	}
}
