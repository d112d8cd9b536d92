//go:build linux && labs

// Package ask tests questions in a cluster with a real kubelet: to a server in a pod, and to one
// that found the schedulers of the cluster itself.
package ask

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

const (
	self      = "localhost/pmk-sched:test"
	namespace = "kube-system"
	token     = "a token of a test, 32 characters"
)

// pods is a Job of four pods; %s are more fields of their spec.
const pods = `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 4
  completions: 4
  template:
    spec:
      restartPolicy: Never
      %s
      containers: [{name: main, image: train, resources: {requests: {cpu: 100m}}}]
`

func TestSchedulersOfAClusterAreAsked(t *testing.T) {
	n, name := labs.Exclusive(t, lab.LayoutPMK), labs.SchedulerName(t)
	n.Load(t, self, "self")
	n.Kubectl(t, "taint", "nodes", "-l", "type=kwok", "simulated=:NoSchedule")
	t.Cleanup(func() { n.Kubectl(t, "taint", "nodes", "-l", "type=kwok", "simulated-") })
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  image: {reference: %q}
  configuration: {preset: binpack}
`, name, n.Image(t)))
	n.UninstallLater(t, name)
	n.PMKSched(t, append([]string{"deploy", "-f", file, "--port", n.Port(t)}, labs.Stable("1s")...)...).OK(t)

	rendered := run.WriteFile(t, "ask.yaml",
		n.PMKSched(t, "render", "ask", "-f", file, "--server-image", self).OK(t).Stdout)
	t.Cleanup(func() { n.Kubectl(t, "delete", "--wait", "-f", rendered) })
	n.Kubectl(t, "apply", "-f", rendered)
	service, err := n.Kube.CoreV1().Services(namespace).Get(t.Context(), name+"-ask", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	authority := secrets(t, n, name+"-ask", service.Spec.ClusterIP)
	n.Kubectl(t, "wait", "--for=condition=Available", "--timeout=3m", "-n", namespace, "deployment/"+name+"-ask")
	tokenFile := run.WriteFile(t, "token", token)
	client := []string{"--address", "https://" + service.Spec.ClusterIP, "--certificate-authority", authority,
		"--token-file", tokenFile}
	question := run.WriteFile(t, "job.yaml", fmt.Sprintf(pods, "tolerations: [{operator: Exists}]"))
	answer := run.Decode[ask.Answer](t, n.PMKSched(t, append([]string{"ask", "-m", question, "-o", "json"}, client...)...).
		OK(t).Stdout)
	used := map[string]bool{}
	for _, pod := range answer.Pods {
		used[pod.Node] = true
	}
	if answer.Scheduler != name || len(answer.Pods) != 4 || len(used) != 1 { // the preset packs
		t.Errorf("the answer of %s: %+v", name, answer)
	}

	// Without a description of a scheduler, the server answers for all schedulers of the cluster.
	socket := "unix:" + t.TempDir() + "/ask.sock"
	cmd := n.Command(run.Context(t), t, run.Program(t), "ask", "serve", "--listen", socket)
	var output run.Output
	cmd.Stderr = &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // interrupted
		if t.Failed() {
			t.Log(output.String())
		}
	}()
	run.Eventually(t, "the server of all schedulers answers", func(ctx context.Context) (bool, string) {
		_, err := (&ask.Client{Address: socket}).Status(ctx)
		return err == nil, fmt.Sprint(err, output.String())
	})
	asked := func(field, scheduler string) {
		t.Helper()
		question := run.WriteFile(t, "job.yaml", fmt.Sprintf(pods, field+"tolerations: [{operator: Exists}]"))
		answer := run.Decode[ask.Answer](t,
			n.PMKSched(t, "ask", "-m", question, "-o", "json", "--address", socket).OK(t).Stdout)
		if answer.Scheduler != scheduler || answer.Fits != ask.Yes {
			t.Errorf("the answer of %s: %+v", scheduler, answer)
		}
	}
	asked("schedulerName: "+corev1.DefaultSchedulerName+"\n      ", corev1.DefaultSchedulerName)
	asked("schedulerName: "+name+"\n      ", name)
	asked("", corev1.DefaultSchedulerName)
	register(t, n, name)
	asked("", name)
}

// register registers a route to a scheduler, as `deploy` does. No webhook answers.
func register(t *testing.T, n *labs.Node, scheduler string) {
	t.Helper()
	objects, err := route.Objects(route.Registration{WebhookNamespace: "nowhere",
		Labels: map[string]string{ownership.LabelManagedBy: ownership.Manager},
		Rule: route.Rule{Scheduler: scheduler, Namespace: namespace,
			Route: v1alpha1.Route{Namespaces: []string{metav1.NamespaceDefault}}}})
	if err != nil {
		t.Fatal(err)
	}
	hook, ok := objects[0].(*registrationv1.MutatingWebhookConfiguration)
	if !ok {
		t.Fatalf("the route is registered by a %T", objects[0])
	}
	hooks := n.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := hooks.Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Kubectl(t, "delete", "mutatingwebhookconfiguration", hook.Name) })
}

// secrets creates the certificate for an address and the token of a server, and returns a file with
// the authority.
func secrets(t *testing.T, n *labs.Node, server, address string) (authority string) {
	t.Helper()
	signer, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: server}, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	serving, err := signer.Sign(x509.Certificate{Subject: pkix.Name{CommonName: server},
		IPAddresses: []net.IP{net.ParseIP(address)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		server + "-tls":   {corev1.TLSCertKey: serving.Cert, corev1.TLSPrivateKeyKey: serving.Key},
		server + "-token": {"token": []byte(token)},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: data}
		if _, err := n.Kube.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Kubectl(t, "delete", "secret", "-n", namespace, name) })
	}
	return run.WriteFile(t, "ca.crt", string(signer.Cert))
}
