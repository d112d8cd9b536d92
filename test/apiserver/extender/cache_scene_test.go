//go:build linux

package extender_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/extender"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

const user = "system:serviceaccount:kube-system:pmk-extender"

// rules are the permissions of an extender, as docs/extenders-reference.md lists them.
var rules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}},
}

// scene is the API server with objects of one test.
type scene struct {
	t    *testing.T
	ctx  context.Context
	kube kubernetes.Interface
	name string
}

func newScene(t *testing.T, name string) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	kube, err := kubernetes.NewForConfig(server.Config())
	c := &scene{t: t, ctx: ctx, kube: kube, name: name}
	c.must(err)
	_, err = kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	c.must(err)
	_, err = kube.CoreV1().ServiceAccounts(name).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	c.must(err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	_, err = kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	c.must(err)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}}
	_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	c.must(err)
	c.must(server.AwaitAccess(ctx, user, authorizationv1.ResourceAttributes{Verb: "watch", Resource: "pods"},
		authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: name}))
	return c
}

func (c *scene) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// node makes a node of four cores.
func (c *scene) node(name string) {
	c.t.Helper()
	_, err := c.kube.CoreV1().Nodes().Create(c.ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
			corev1.ResourcePods: resource.MustParse("110")}},
	}, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		if err := c.kube.CoreV1().Nodes().Delete(context.WithoutCancel(c.ctx), name, metav1.DeleteOptions{}); err != nil {
			c.t.Log(err)
		}
	})
}

// pod makes a pod of one core, bound to a node if one is named.
func (c *scene) pod(name, node string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.kube.CoreV1().Pods(c.name).Create(c.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "localhost/none",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}},
	}, metav1.CreateOptions{})
	c.must(err)
	if node != "" {
		c.must(c.kube.CoreV1().Pods(c.name).Bind(c.ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node",
				Name: node}}, metav1.CreateOptions{}))
	}
	return pod
}

// gone deletes a pod at once.
func (c *scene) gone(name string) {
	c.t.Helper()
	now := int64(0)
	c.must(c.kube.CoreV1().Pods(c.name).Delete(c.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// serve starts an extender with the identity of its ServiceAccount, and returns when it is ready.
func (c *scene) serve(make func(ctx context.Context, h *extender.Handle) (scheduler.Plugin,
	error)) (*httptest.Server, *extender.Handle) {
	c.t.Helper()
	return c.serveOver(&line{}, make)
}

// serveOver is like serve, with connections to the API server over a line.
func (c *scene) serveOver(l *line,
	make func(ctx context.Context, h *extender.Handle) (scheduler.Plugin, error)) (*httptest.Server, *extender.Handle) {
	c.t.Helper()
	config := server.ConfigFor(user)
	config.Dial = l.dial
	config.Wrap(l.countLists)
	handle, err := extender.NewHandle(extender.HandleOptions{Config: config})
	c.must(err)
	plugin, err := make(c.ctx, handle)
	c.must(err)
	e, err := extender.New(extender.Options{Handle: handle, Policies: []extender.Policy{{Plugin: plugin}},
		Verbs: append(extender.DefaultVerbs(), extender.VerbBind)})
	c.must(err)
	c.must(handle.Start(c.ctx))
	running := httptest.NewServer(identified(e.Handler()))
	c.t.Cleanup(running.Close)
	c.until("the extender is ready", func() bool { return e.Ready() == nil })
	return running, handle
}

// identified treats every client as one with a certificate, which bind requires.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
		h.ServeHTTP(w, r)
	})
}

// line is the network between an extender and the API server, which can be cut.
type line struct {
	mu    sync.Mutex
	down  bool
	open  []net.Conn
	lists int
}

// countLists counts the lists of pods that the API server answers.
func (l *line) countLists(next http.RoundTripper) http.RoundTripper {
	return apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && r.URL.Path == "/api/v1/pods" && !r.URL.Query().Has("watch") {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lists++
		}
		return response, err
	})
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the line is cut")
	}
	connection, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		l.open = append(l.open, connection)
	}
	return connection, err
}

func (c *scene) until(what string, holds func() bool) {
	c.t.Helper()
	err := wait.PollUntilContextCancel(c.ctx, 20*time.Millisecond, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		c.t.Fatalf("wait until %s: %v", what, err)
	}
}

func ask[T any](c *scene, running *httptest.Server, verb string, request interface{}) T {
	c.t.Helper()
	text, err := json.Marshal(request)
	c.must(err)
	response, err := running.Client().Post(running.URL+"/"+verb, "application/json", bytes.NewReader(text))
	c.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	c.must(err)
	if response.StatusCode != http.StatusOK {
		c.t.Fatalf("%s answers %s: %s", verb, response.Status, body)
	}
	var into T
	c.must(json.Unmarshal(body, &into))
	return into
}

// scores asks for the scores of nodes, by name.
func (c *scene) scores(running *httptest.Server, nodes ...string) map[string]int64 {
	c.t.Helper()
	all := map[string]int64{}
	for _, s := range ask[extenderv1.HostPriorityList](c, running, extender.VerbPrioritize,
		extenderv1.ExtenderArgs{Pod: &corev1.Pod{}, NodeNames: &nodes}) {
		all[s.Host] = s.Score
	}
	return all
}

// filtered asks which nodes can run a pod, and why others cannot.
func (c *scene) filtered(running *httptest.Server, nodes ...string) string {
	c.t.Helper()
	got := ask[extenderv1.ExtenderFilterResult](c, running, extender.VerbFilter,
		extenderv1.ExtenderArgs{Pod: &corev1.Pod{}, NodeNames: &nodes})
	return fmt.Sprint(*got.NodeNames, got.FailedNodes, got.Error)
}
