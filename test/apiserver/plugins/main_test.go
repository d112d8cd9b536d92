//go:build linux

// Package plugins tests the bundled plugins against a real API server and a real Prometheus.
package plugins

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// handle is the handle that a plugin gets from a scheduler, with the identity of a user of the API
// server.
type handle struct {
	scheduler.Handle
	config   *rest.Config
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	registry *prometheus.Registry
	log      *lines
}

func newHandle(t *testing.T, config *rest.Config) *handle {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &handle{config: config, client: client, factory: informers.NewSharedInformerFactory(client, 0),
		registry: prometheus.NewRegistry(), log: &lines{t: t}}
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) KubeConfig() (*rest.Config, error)                      { return rest.CopyConfig(h.config), nil }
func (h *handle) Metrics() prometheus.Registerer                         { return h.registry }
func (h *handle) Activate(ctx context.Context, pod *corev1.Pod) error {
	return scheduler.ActivateByUpdate(ctx, h.client, pod)
}
func (h *handle) Logger(ctx context.Context) scheduler.Logger { return scheduler.NewLogger(ctx, h.log) }

// metric returns the sum of a metric's values over the labels that contain all of the given pairs,
// such as result="ok".
func (h *handle) metric(t *testing.T, name string, pairs ...string) float64 {
	t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, m := range family.GetMetric() {
			for _, pair := range pairs {
				if !strings.Contains(fmt.Sprint(m.GetLabel()), pair) {
					continue metrics
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// lines keeps the log's lines of level 0 and the errors.
type lines struct {
	t    *testing.T
	mu   sync.Mutex
	text []string
}

func (l *lines) Enabled(_ context.Context, level int) bool { return level == 0 }

func (l *lines) Info(_ context.Context, _ int, message string, keysAndValues []interface{}) {
	l.add("info: " + message + " " + fmt.Sprint(keysAndValues...))
}

func (l *lines) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	l.add("error: " + message + ": " + err.Error() + " " + fmt.Sprint(keysAndValues...))
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line)
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// user creates a user with only the permissions of rules, and returns the configuration of a client
// for that user.
func user(ctx context.Context, t *testing.T, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	rbac := server.Client(t).RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return server.ConfigFor(name)
}

// node is a node as the plugins see it.
type node struct {
	scheduler.NodeInfo
	object *corev1.Node
}

func (n node) Node() *corev1.Node { return n.object }
func (n node) Allocatable() scheduler.Resources {
	return scheduler.Resources{MilliCPU: 4000, Memory: 8 << 30}
}
