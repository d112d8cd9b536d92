//go:build linux

// Package controller runs the controller of CustomScheduler objects against a real API server, with
// the permissions of its own ServiceAccount. The test does the work of the controller manager, the
// kubelets and the schedulers.
package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controllers"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// brokenImage is an image whose scheduler runs and binds no pod.
const brokenImage = "localhost/broken:v1"

var (
	server *apiserver.Server
	// auditLog has the requests to the server.
	auditLog string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (status int) {
	ctx := context.Background()
	ctrllog.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "controller-")
	if err == nil {
		defer os.RemoveAll(dir)
		server, auditLog, err = apiserver.StartAudited(ctx, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start API server for the tests:", err)
		return 1
	}
	defer func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stop API server of the tests:", err)
			status = 1
		}
	}()
	return m.Run()
}

// world is a namespace with an installed controller.
type world struct {
	server *apiserver.Server
	ns     string
	kube   client.Client
	log    *zap.Logger
	// bounds of the images that the next controller deploys.
	bounds session.Bounds
	// address through which the next controller reaches the API server. Empty: its own address.
	address string
}

// install installs the objects of a controller in a new namespace.
func install(t *testing.T, s *apiserver.Server) *world {
	t.Helper()
	s.Clear(t)
	return installIn(t, s, s.Namespace(t))
}

func installIn(t *testing.T, s *apiserver.Server, ns string) *world {
	t.Helper()
	w := &world{server: s, ns: ns, log: zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel))}
	w.kube = controllers.Install(t, s, w.ns)
	return w
}

// newWorld installs the objects of a controller, and plays the cluster.
func newWorld(t *testing.T, s *apiserver.Server) *world {
	t.Helper()
	w := install(t, s)
	w.play(t)
	return w
}

func (w *world) play(t *testing.T) {
	t.Helper()
	w.server.Play(t, w.ns, func(image string) apiserver.Behavior {
		if strings.HasPrefix(image, brokenImage) {
			return apiserver.NeverSchedules
		}
		return apiserver.Works
	})
}

// options of a controller that waits only for what is broken. On a machine with a high load, a
// deployment that works takes several seconds; one that has failed is tried again after a back-off.
func (w *world) options() controller.Options {
	return controller.Options{
		Namespace: w.ns, MetricsAddress: "0", HealthAddress: "0", LeaderElect: true, Interval: time.Second,
		Timeout: 20 * time.Second, StableFor: 200 * time.Millisecond, Version: "v0.0.0-test",
	}
}

// session of a user, or of everyone if user is empty.
func (w *world) session(t *testing.T, user string) *session.Session {
	t.Helper()
	file := t.TempDir() + "/kubeconfig"
	if err := w.server.WriteKubeconfig(file, user); err != nil {
		t.Fatal(err)
	}
	return &session.Session{
		Connection: kubeapi.ConnectOptions{Kubeconfig: file, Server: w.address}, NodeRoot: inspect.NoNode,
		CacheDir: t.TempDir(), Warn: func(text string) { w.log.Warn(text) }, Note: func(string) {},
		OnStep: func(string) func(error) { return func(error) {} }, Log: w.log, Bounds: w.bounds,
	}
}

// account is the user of the controller.
func (w *world) account() string { return "system:serviceaccount:" + w.ns + ":" + controller.Name }

// start runs the controller with the permissions of its ServiceAccount until the test ends.
func (w *world) start(t *testing.T, o controller.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	s := w.session(t, w.account())
	go func() { done <- controller.Run(ctx, s, o) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			if err := <-done; err != nil {
				t.Errorf("the controller: %v", err)
			}
		}
		stopped = true
	}
	t.Cleanup(stop)
	return stop
}

// create creates an object from the YAML of its spec.
func (w *world) create(t *testing.T, name, spec string) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(spec), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion(v1alpha1.APIVersion)
	object.SetKind(v1alpha1.Kind)
	object.SetNamespace(w.ns)
	object.SetName(name)
	return w.kube.Create(t.Context(), object)
}

func (w *world) mustCreate(t *testing.T, name, spec string) {
	t.Helper()
	if err := w.create(t, name, spec); err != nil {
		t.Fatal(err)
	}
}

func (w *world) get(t *testing.T, name string) *v1alpha1.CustomScheduler {
	t.Helper()
	found := &v1alpha1.CustomScheduler{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// await waits for a condition, and returns the object. The reason may be empty.
func (w *world) await(
	t *testing.T, name, condition string, status metav1.ConditionStatus, reason string,
) *v1alpha1.CustomScheduler {
	t.Helper()
	var found *v1alpha1.CustomScheduler
	run.Eventually(t, condition+" of "+name, func(context.Context) (bool, string) {
		found = w.get(t, name)
		c := meta.FindStatusCondition(found.Status.Conditions, condition)
		text, _ := yaml.Marshal(found.Status)
		return c != nil && c.Status == status && (reason == "" || c.Reason == reason) &&
			c.ObservedGeneration == found.Generation, string(text)
	})
	return found
}

// message returns the message of a condition.
func message(object *v1alpha1.CustomScheduler, condition string) string {
	if c := meta.FindStatusCondition(object.Status.Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}

func has(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func unmarshal(text string, into any) error { return yaml.UnmarshalStrict([]byte(text), into) }
