//go:build linux

package controlplane

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// Scheduler describes a kube-scheduler.
type Scheduler struct {
	// Name is the schedulerName of its pods.
	Name string
	// Extenders are the extenders that it calls.
	Extenders []profiles.Extender
	// Policy makes the scheduler read predicates, priorities and extenders from a legacy Policy in
	// a ConfigMap.
	Policy bool
	// Plugins are the plugins in Binary in addition to the in-tree ones.
	Plugins []string
	// Enable are plugins that Binary has and that the configuration enables.
	Enable []profiles.Plugin
	// Source is the rest of its configuration. If it is empty, the defaults apply.
	Source []byte
	// User has only the permissions of RBAC objects. If it is empty, the scheduler has all
	// permissions.
	User string
	// Binary is the path of the program. If it is empty, the release's own kube-scheduler runs.
	Binary string
	// LeaderElect enables leader election, with a lease in kube-system that is named after the
	// scheduler.
	LeaderElect bool
	// Args are more flags, which win.
	Args []string
}

// NewScheduler configures a scheduler as pmk-sched renders it for the release; Start starts it.
func (p *Plane) NewScheduler(t testing.TB, s Scheduler) *Process {
	t.Helper()
	kubeconfig := p.Kubeconfig
	if s.User != "" {
		kubeconfig = p.kubeconfig(t, s.User)
	}
	request := profiles.Request{
		Release: p.Release, SchedulerName: s.Name, Kubeconfig: kubeconfig,
		Extenders: s.Extenders, Plugins: s.Plugins, Enable: s.Enable, Source: s.Source, LeaderElect: s.LeaderElect,
		InsecurePort: int(netip.MustParseAddrPort(FreeAddress(t)).Port()), // for several schedulers of 1.20 to 1.22 at once
	}
	render := profiles.Render
	if s.Policy {
		render = profiles.RenderPolicy
	}
	rendered, err := render(request)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, rendered.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--config=" + config, "--secure-port=0", "--v=3"}, rendered.Args...)
	if s.Policy {
		args = append(args, "--policy-configmap="+p.policy(t, rendered.Policy),
			"--policy-configmap-namespace="+metav1.NamespaceSystem)
	}
	return NewProcess(t, cmp.Or(s.Binary, p.scheduler), append(args, s.Args...)...)
}

// policy puts a Policy where a scheduler reads it.
func (p *Plane) policy(t testing.TB, text []byte) string {
	t.Helper()
	made, err := p.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-"}, Data: map[string]string{"policy.cfg": string(text)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// Namespace makes a namespace in which pods can be created at once, without a controller for
// service accounts.
func (p *Plane) Namespace(ctx context.Context, t testing.TB, name string) {
	t.Helper()
	_, err := p.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := p.Kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
