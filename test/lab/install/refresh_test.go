//go:build linux && labs

package install

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const schedulerConf = "/etc/kubernetes/scheduler.conf"

// copyOfNode is a directory with a scheduler.conf of the test's own, so that the node's stays.
type copyOfNode struct {
	node   *labs.Node
	root   string
	signer *certificates.Authority
}

func newCopyOfNode(t *testing.T, n *labs.Node) *copyOfNode {
	t.Helper()
	pki := "/etc/kubernetes/pki/"
	signer, err := certificates.ParseAuthority(certificates.Pair{Cert: []byte(n.Shell(t, "cat "+pki+"ca.crt")),
		Key: []byte(n.Shell(t, "cat "+pki+"ca.key"))})
	if err != nil {
		t.Fatal(err)
	}
	return &copyOfNode{n, t.TempDir(), signer}
}

// renew writes a certificate of the scheduler that expires at a time.
func (c *copyOfNode) renew(t *testing.T, expires time.Time) {
	t.Helper()
	pair, err := c.signer.Sign(x509.Certificate{
		Subject: pkix.Name{CommonName: "system:kube-scheduler"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(c.node.Shell(t, "cat "+schedulerConf)))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientKey = "", ""
		user.ClientCertificateData, user.ClientKeyData = pair.Cert, pair.Key
	}
	file := filepath.Join(c.root, schedulerConf)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// bindings creates pods for a scheduler one after the other until stop is called, which returns the
// longest time that one was pending.
func bindings(t *testing.T, n *labs.Node, scheduler string) (stop func() time.Duration) {
	t.Helper()
	ctx := run.Context(t)
	creating, cancel := context.WithCancel(ctx)
	namespace, err := n.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "refresh-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	var failed error
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for number := 0; creating.Err() == nil && failed == nil; number++ {
			var waited time.Duration
			waited, failed = bind(ctx, n, namespace.Name, scheduler, "pod-"+strconv.Itoa(number))
			longest = max(longest, waited)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
		controlplane.DeletePods(ctx, t, n.Kube, namespace.Name)
		if err := n.Kube.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return func() time.Duration {
		t.Helper()
		cancel()
		<-finished
		if failed != nil {
			t.Fatal(failed)
		}
		return longest
	}
}

// bind creates a pod, which is deleted when it is bound, and returns how long it was pending.
func bind(ctx context.Context, n *labs.Node, namespace, scheduler, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, run.Patience)
	defer cancel()
	no, created := false, time.Now()
	pods := n.Kube.CoreV1().Pods(namespace)
	_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, AutomountServiceAccountToken: &no,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: labs.Workers()},
				}}},
			}}},
		Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
	}}, metav1.CreateOptions{})
	for err == nil {
		var pod *corev1.Pod
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err == nil && pod.Spec.NodeName != "" {
			waited := time.Since(created)
			return waited, pods.Delete(ctx, name, metav1.DeleteOptions{})
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return time.Since(created), fmt.Errorf("pod %s of scheduler %s was not bound: %w", name, scheduler, err)
}

// The certificate of two schedulers expires. The scheduler that got a new certificate before binds
// pods all the time, the other one binds none.
func TestRefreshedCertificateKeepsTheSchedulerBinding(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	left := name + "-left"
	node := newCopyOfNode(t, n)
	// Long enough for two deployments and a refresh on a busy machine.
	expires := time.Now().Add(4 * time.Minute).Truncate(time.Second)
	node.renew(t, expires)
	image := n.Image(t)
	for _, scheduler := range []string{name, left} {
		n.Deploy(t, scheduler, image, "--node-root", node.root, "--credentials", "node")
	}
	n.PMKSched(t, "status").Fails(t, 3, "scheduler "+name+" in namespace kube-system", "expires in 0 days")

	refresh := append([]string{"credentials", "refresh", "--name", name, "--node-root", node.root}, labs.Stable("1s")...)
	n.PMKSched(t, refresh...).OK(t).Prints(t, "already uses the certificate of "+schedulerConf)
	node.renew(t, expires.Add(-time.Minute))
	n.PMKSched(t, refresh...).Fails(t, 1, "is older than the one in use")
	if got := history(t, n, name); len(got) != 1 {
		t.Fatalf("history: %+v", got)
	}

	stop := bindings(t, n, name)
	node.renew(t, time.Now().Add(time.Hour))
	n.PMKSched(t, refresh...).OK(t).Prints(t, "scheduler "+name+" uses the new certificate (revision 2)")
	if time.Now().After(expires) {
		t.Fatal("the certificate expired before it was refreshed: the machine is too slow for this test")
	}
	got := history(t, n, name)
	if last := got[len(got)-1]; len(got) != 2 || !last.Current || last.Origin != "credentials refresh: "+schedulerConf ||
		last.Configuration != got[0].Configuration {
		t.Errorf("history: %+v", got)
	}
	run.Eventually(t, "the former certificate has expired", func(context.Context) (bool, string) {
		return time.Now().After(expires.Add(30 * time.Second)), "it expires at " + expires.String()
	})
	n.PMKSched(t, "verify", "--name", name).OK(t)
	n.PMKSched(t, "verify", "--name", left, "--timeout", "15s").Fails(t, 3, "")
	if longest := stop(); longest > time.Minute {
		t.Errorf("a pod was pending for %s", longest)
	}
	n.PMKSched(t, "rollback", "--name", name).Fails(t, 2, "expired on")
	hasNoKeyInConfigMaps(t, n, name)
	n.CleanLog(t, name)
}

// The cluster signs a certificate for the same user, and the former one can be returned to.
func TestRefreshByACertificateSigningRequest(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	n.Deploy(t, name, n.Image(t), "--credentials", "node")
	show := func() credentialsReport {
		return run.Decode[credentialsReport](t,
			n.PMKSched(t, "credentials", "show", "--name", name, "-o", "json").OK(t).Stdout)
	}
	before := show()
	// As on an administrator's machine, without the files of a node.
	refresh := append([]string{"credentials", "refresh", "--name", name, "--node-root", "none"}, labs.Stable("1s")...)
	n.PMKSched(t, refresh...).Fails(t, 2, "this machine is not one", "--csr")
	printed := n.PMKSched(t, append(refresh, "--csr")...).OK(t)
	printed.Prints(t, "uses the new certificate (revision 2)")
	if strings.Contains(printed.String(), "PRIVATE KEY") {
		t.Errorf("a key was printed: %s", printed)
	}
	after := show()
	if after.Subject != before.Subject || after.Issuer != before.Issuer || after.Source == before.Source ||
		after.Expires == nil {
		t.Errorf("before %+v, after %+v", before, after)
	}
	n.PMKSched(t, append([]string{"rollback", "--name", name}, labs.Stable("1s")...)...).OK(t)
	if again := show(); again.Source != before.Source {
		t.Errorf("after the rollback %+v, want %+v", again, before)
	}
	n.PMKSched(t, "verify", "--name", name).OK(t)
	n.CleanLog(t, name)
}
