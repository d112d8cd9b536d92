//go:build linux

package calls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// proof: `extender deploy` proves that a scheduler calls an ignorable extender, also while another
// caller sends requests for pods of its own. Nothing has the scheduler's log, as on a cluster whose
// kubelets the API server does not reach.
func proof(t *testing.T, s scene) {
	ctx := testContext(t)
	dir, address := t.TempDir(), proxyable(t)
	set := certify(t, certificates.Set{}, time.Now())
	files(t, dir, set)
	e := s.secured(t, dir, "--listen", address.String())
	e.URL = "https://" + address.String()
	e.Start()
	e.Await(ctx, t, "")
	callAllTheTime(ctx, t, e)
	for name, c := range map[string]struct {
		url  string
		want string // in the error
	}{
		"it calls the extender": {url: e.URL},
		"it skips the extender": {url: "https://127.0.0.1:1", want: "answered no request for it"},
	} {
		t.Run(name, func(t *testing.T) {
			group, nodes := s.group(ctx, t, "a", "b")
			s.untaint(ctx, t, nodes...)
			s.extenderPod(ctx, t, group, address)
			asked, yes := extender(c.url), true
			asked.EnableHTTPS, asked.Ignorable = true, &yes
			asked.TLS = &profiles.ExtenderTLS{CAData: set.CA.Cert, ServerName: "localhost"}
			s.start(t, group, asked)
			s.createAccounts(ctx, t, group)
			unknown, err := verify.Extender(ctx, s.Config(), verify.ExtenderOptions{
				Options:  verify.Options{Name: group, Namespace: group, Image: "localhost/none:v1"},
				Extender: "ext", ExtenderNamespace: group, Port: address.Port, URL: c.url, Filters: true,
			})
			if errors.As(err, new(*verify.NotReachedError)) != (c.want != "") ||
				err != nil && !strings.Contains(err.Error(), c.want) || unknown != "" {
				t.Errorf("unknown %q, error %v, want %q", unknown, err, c.want)
			}
		})
	}
}

// proxyable returns a free address that the API server accepts as an address of a pod: it refuses
// loopback (k8s.io/apimachinery/pkg/util/proxy and pkg/proxy/util, IsProxyableIP).
func proxyable(t *testing.T) *net.TCPAddr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		network, ok := one.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() || network.IP.To4() == nil {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", network.IP.String()+":0")
		if err != nil {
			t.Fatal(err)
		}
		address, ok := listener.Addr().(*net.TCPAddr)
		if err := listener.Close(); err != nil || !ok {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("the machine has no address but loopback")
	return nil
}

// callAllTheTime sends requests for pods that do not exist, labelled as the pod of a verification.
func callAllTheTime(ctx context.Context, t *testing.T, e *controlplane.Extender) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "invented", Name: "probe",
				UID: types.UID(fmt.Sprint("invented-", i)), Labels: map[string]string{
					ownership.LabelComponent: ownership.ComponentVerify}}}
			if _, err := e.Scores(ctx, pod, "a"); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond): // the rate of the caller, not a wait
			}
		}
	}()
}

// untaint removes the taints of nodes: the pod of a verification tolerates none.
func (s scene) untaint(ctx context.Context, t *testing.T, nodes ...string) {
	t.Helper()
	for _, name := range nodes {
		if _, err := s.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"spec": {"taints": null}}`),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// extenderPod makes the pod of extender ext, which is ready and has the address.
func (s scene) extenderPod(ctx context.Context, t *testing.T, namespace string, address *net.TCPAddr) {
	t.Helper()
	pod := controlplane.Pod("none", namespace, "ext-0")
	pod.Labels = ownership.Labels("ext")
	pod.Labels[ownership.LabelName] = ownership.Extender
	made, err := s.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.PodIP = address.IP.String()
	made.Status.PodIPs = []corev1.PodIP{{IP: made.Status.PodIP}}
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := s.Kube.CoreV1().Pods(namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createAccounts does the work of the controller of service accounts for the namespaces of
// verifications of a scheduler.
func (s scene) createAccounts(ctx context.Context, t *testing.T, scheduler string) {
	t.Helper()
	namespaces, err := s.Kube.CoreV1().Namespaces().Watch(ctx,
		metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + scheduler})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		namespaces.Stop()
		<-done
	})
	go func() {
		defer close(done)
		for event := range namespaces.ResultChan() {
			namespace, ok := event.Object.(*corev1.Namespace)
			if !ok || namespace.DeletionTimestamp != nil {
				continue
			}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			if _, err := s.Kube.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{}); err !=
				nil && !apierrors.IsAlreadyExists(err) {
				t.Error(err)
			}
		}
	}()
}
