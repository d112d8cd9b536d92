//go:build linux

// Package webhooks installs the admission webhooks on a real API server, and runs their replicas as
// processes. The API server finds them by the endpoints of their Service, as in a cluster.
package webhooks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/admission/arbiter"
	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controllers"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Flags returns the flags of an API server: it resolves Services to endpoints, since the test has
// no Service network, and pods need no ServiceAccounts.
func Flags() []string {
	return []string{"--enable-aggregator-routing=true", "--disable-admission-plugins=ServiceAccount"}
}

// Installed are the webhooks in the default namespace of the controller.
type Installed struct {
	server    *apiserver.Server
	kube      kubernetes.Interface
	namespace string
	address   string // of this machine; endpoints must not be on loopback
	replicas  []*Replica
}

// Install installs the objects that `controller render --admission route,arbiter` prints. Trust and
// replicas are missing.
func Install(t testing.TB, s *apiserver.Server) *Installed {
	t.Helper()
	release, err := inspect.ServerRelease(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	controllers.InstallWith(t, s, controller.ManifestOptions{Namespace: controller.DefaultNamespace,
		Image: "localhost/pmk-sched:v1", Replicas: 1, Release: release, Admission: admission.Parts()})
	return &Installed{server: s, kube: s.Client(t), namespace: controller.DefaultNamespace, address: ownAddress(t)}
}

func ownAddress(t testing.TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Fatal("the machine has no address besides loopback")
	return ""
}

// Trust does what the controller does, with its permissions.
func (w *Installed) Trust(t testing.TB) {
	t.Helper()
	user := "system:serviceaccount:" + w.namespace + ":" + controller.Name
	run.Eventually(t, "the API server trusts the webhooks", func(ctx context.Context) (bool, string) {
		kube, err := kubernetes.NewForConfig(w.server.ConfigFor(user))
		if err != nil {
			return false, err.Error()
		}
		a, err := authority.Ensure(ctx, kube, w.namespace)
		if err != nil {
			return false, err.Error()
		}
		changed, err := a.Trust(ctx, kube)
		if err != nil {
			return false, err.Error()
		}
		return len(changed) == 0, fmt.Sprint(changed)
	})
}

// Account is the user of the replicas.
func (w *Installed) Account() string {
	return "system:serviceaccount:" + w.namespace + ":" + admission.Name
}

// Replica is a process.
type Replica struct {
	Name string
	// Address of its webhooks.
	Address string
	Output  *run.Output
	cmd     *exec.Cmd
	port    int
	status  string
	ended   chan error
}

// Start starts a replica, and returns when it is ready and part of the Service.
func (w *Installed) Start(t testing.TB) *Replica {
	t.Helper()
	kubeconfig := t.TempDir() + "/kubeconfig"
	if err := w.server.WriteKubeconfig(kubeconfig, w.Account()); err != nil {
		t.Fatal(err)
	}
	r := &Replica{Name: fmt.Sprintf("replica-%d", len(w.replicas)+1), Output: &run.Output{}, ended: make(chan error, 1)}
	r.port = freePort(t, w.address)
	r.Address = net.JoinHostPort(w.address, strconv.Itoa(r.port))
	r.status = net.JoinHostPort(w.address, strconv.Itoa(freePort(t, w.address)))
	r.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), run.Program(t), "admission", "run",
		"--kubeconfig", kubeconfig, "--namespace", w.namespace, "--node-root=none", "--log-level=info", "--listen",
		r.Address, "--metrics-address", r.status, "--pod", r.Name, "--pod-ip",
		w.address, "--drain=100ms", "--admission=route,arbiter")
	r.cmd.Env = append(os.Environ(), "GOMEMLIMIT=400MiB") // as in the Deployment
	r.cmd.Stdout, r.cmd.Stderr = r.Output, r.Output
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		r.Signal(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s:\n%s", r.Name, r.Output)
		}
	})
	run.Eventually(t, r.Name+" is ready", func(ctx context.Context) (bool, string) {
		text, err := r.get(ctx, "/readyz")
		return err == nil && text == "ok\n", fmt.Sprint(text, err, r.Output)
	})
	w.replicas = append(w.replicas, r)
	w.publish(t)
	return r
}

func freePort(t testing.TB, host string) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// publish writes the endpoints of the Service.
func (w *Installed) publish(t testing.TB) {
	t.Helper()
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: admission.Name, Namespace: w.namespace}} //nolint:staticcheck // what the API server of the test reads
	for _, r := range w.replicas {
		e.Subsets = append(e.Subsets, corev1.EndpointSubset{ //nolint:staticcheck // the same
			Addresses: []corev1.EndpointAddress{{IP: w.address}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(r.port)}}})
	}
	err := w.kube.CoreV1().Endpoints(w.namespace).Delete(t.Context(), e.Name, metav1.DeleteOptions{})
	if err == nil || len(w.replicas) == 1 {
		_, err = w.kube.CoreV1().Endpoints(w.namespace).Create(t.Context(), e, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.publishSlices(t)
}

// publishSlices writes the EndpointSlices of the Service, which newer API servers read instead. One
// has the ports of all of its addresses, so that each replica has its own.
func (w *Installed) publishSlices(t testing.TB) {
	t.Helper()
	slices := w.kube.DiscoveryV1().EndpointSlices(w.namespace)
	service := map[string]string{discoveryv1.LabelServiceName: admission.Name}
	err := slices.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service).String()})
	if apierrors.IsNotFound(err) { // 1.20
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	name, tcp, ready := "https", corev1.ProtocolTCP, true
	for _, r := range w.replicas {
		port := int32(r.port)
		_, err := slices.Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{GenerateName: admission.Name + "-", Namespace: w.namespace, Labels: service},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{w.address},
				Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
			Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Remove takes a replica out of the Service, as the cluster does when its probes fail.
func (w *Installed) Remove(t testing.TB, r *Replica) {
	t.Helper()
	for i := range w.replicas {
		if w.replicas[i] == r {
			w.replicas = append(w.replicas[:i:i], w.replicas[i+1:]...)
			break
		}
	}
	w.publish(t)
}

// Signal sends a signal to a replica. After SIGKILL, it waits for its end.
func (r *Replica) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if r.cmd.ProcessState != nil {
		return
	}
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Logf("%s to %s: %v", signal, r.Name, err)
	}
	if signal == syscall.SIGKILL {
		err := <-r.ended
		r.ended <- err
	}
}

func (r *Replica) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.status+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// Metric returns the value of a metric with its labels, such as x{result="refused"}, or 0.
func (r *Replica) Metric(t testing.TB, name string) float64 {
	t.Helper()
	text, err := r.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	return 0
}

// Leader waits until one replica decides, and returns it.
func (w *Installed) Leader(t testing.TB) (leader *Replica) {
	t.Helper()
	run.Eventually(t, "a replica leads", func(ctx context.Context) (bool, string) {
		lease, err := w.kube.CoordinationV1().Leases(w.namespace).Get(ctx, arbiter.LeaseName, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, fmt.Sprint(err)
		}
		name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "/")
		for _, r := range w.replicas {
			if r.Name == name && time.Since(lease.Spec.AcquireTime.Time) > 1500*time.Millisecond {
				leader = r
			}
		}
		return leader != nil, name
	})
	return leader
}

// PID is the process of a replica.
func (r *Replica) PID() int { return r.cmd.Process.Pid }

// Decisions returns the metrics of the replica's decisions.
func (r *Replica) Decisions(t testing.TB) string {
	t.Helper()
	text, err := r.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "pmk_sched_arbiter_") || strings.HasPrefix(line, "pmk_sched_admission_requests") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
