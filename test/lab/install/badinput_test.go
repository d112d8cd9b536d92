package install

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a person sees when what they gave cannot work on a cluster that does.

func TestImageThatCannotBePulledIsToldAndUndone(t *testing.T) {
	m := lend(t, "pmk")
	r := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", "localhost/not-there:v1", "--timeout", "2m")
	r.fails(t, 1, "localhost/not-there:v1", "pull", "hint: ")
	m.leftNothing(t, "my-scheduler")
}

func TestBadImageLeavesTheDeployedSchedulerAsItWas(t *testing.T) {
	m := lend(t, "pmk")
	image := m.image(t)
	t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
	m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
	m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", "localhost/not-there:v1", "--timeout", "2m").fails(t, 1, "localhost/not-there:v1")
	m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
	if got := m.kubectl(t, "get", "deployment", "my-scheduler", "-n", "kube-system", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); got != image {
		t.Errorf("the image after a failed deployment is %q, want %q", got, image)
	}
}

func TestPortThatIsTakenIsRefused(t *testing.T) {
	m := lend(t, "pmk")
	r := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", m.image(t), "--port", "10259")
	r.fails(t, 2, "10259", "in use", "10260")
	m.leftNothing(t, "my-scheduler")
}

func TestConfigurationThatCannotWorkIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	m := lend(t, "pmk")
	image := m.image(t)
	for name, c := range map[string]struct{ config, says string }{
		"malformed":      {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: [", "config.yaml:2"},
		"empty":          {"", "empty"},
		"wrong kind":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "Pod"},
		"unknown plugin": {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: my-scheduler\n  plugins:\n    score:\n      enabled:\n      - name: NoSuchPlugin\n", "NoSuchPlugin"},
		"unknown field":  {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparalelism: 4\n", "paralelism"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image, "--config", file).fails(t, 2, c.says)
			m.leftNothing(t, "my-scheduler")
		})
	}
}

func TestNoPermissionIsTold(t *testing.T) {
	m := lend(t, "pmk")
	m.apply(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: nobody, namespace: default}\n")
	kubeconfig := m.kubeconfigOf(t, "nobody")
	r := m.pmkSched(t, "--kubeconfig", kubeconfig, "deploy", "--name", "my-scheduler", "--image", m.image(t))
	if r.code == 0 {
		t.Fatalf("somebody without any permission deployed: %s", r)
	}
	r.fails(t, r.code, "system:serviceaccount:default:nobody", "cannot")
	m.leftNothing(t, "my-scheduler")
}

func TestDetectWithoutPrivilegesWarnsAndGoesOn(t *testing.T) {
	m := lend(t, "pmk")
	m.apply(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: nobody, namespace: default}\n")
	r := m.pmkSched(t, "--kubeconfig", m.kubeconfigOf(t, "nobody"), "detect", "-o", "json").ok(t)
	got := decode[detected](t, r.stdout)
	if got.Server.Version != branch || got.Source.Branch != branch {
		t.Errorf("the release is not found without privileges: %s", r)
	}
	if len(got.Warnings) == 0 {
		t.Errorf("nothing warns of what could not be read: %s", r)
	}
}

// kubeconfigOf writes a kubeconfig for a ServiceAccount of the namespace default.
func (m master) kubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	token := strings.TrimSpace(m.kubectl(t, "create", "token", account, "-n", "default"))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	raw := m.kubectl(t, "config", "view", "--raw", "--minify", "--flatten")
	if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	m.kubectl(t, "--kubeconfig", file, "config", "set-credentials", account, "--token", token)
	m.kubectl(t, "--kubeconfig", file, "config", "set-context", "--current", "--user", account)
	return file
}

func TestNodeKubeconfigThatCannotBeUsedIsRefused(t *testing.T) {
	m := lend(t, "pmk")
	image := m.image(t)
	expired := expiredCertificate(t)
	for name, c := range map[string]struct{ content, says string }{
		"expired":    {"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: local, user: u}}]\nclusters: [{name: local, cluster: {server: 'https://localhost:443'}}]\nusers: [{name: u, user: {client-certificate-data: " + expired + "}}]\n", "expired"},
		"not a file": {"\tnot yaml", "kube-scheduler.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			r := m.pmkSched(t, "--node-root", root, "deploy", "--name", "my-scheduler", "--image", image, "--credentials", "node")
			if r.code == 0 {
				t.Fatalf("it deployed: %s", r)
			}
			r.fails(t, r.code, c.says, "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
			m.leftNothing(t, "my-scheduler")
		})
	}
}

// expiredCertificate is the base64 of a PEM certificate of the scheduler's user that ended an hour ago.
func expiredCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "system:kube-scheduler"},
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     time.Now().Add(-time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestNameThatIsNoDNSLabelIsRefused(t *testing.T) {
	m := lend(t, "pmk")
	for _, name := range []string{"My_Scheduler", "a.b", strings.Repeat("x", 64), "-x", "default-scheduler"} {
		m.pmkSched(t, "deploy", "--name", name, "--image", "localhost/x:v1").fails(t, 2, name)
	}
}

func TestTwoDeploysOfOneNameAtOnceDoNotMix(t *testing.T) {
	m := lend(t, "pmk")
	image := m.image(t)
	t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
	results := make([]result, 2)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			results[i] = run(t, m.command(patience(t), program, "deploy", "--name", "my-scheduler", "--image", image))
		})
	}
	wg.Wait()
	done := 0
	for _, r := range results {
		if r.code == 0 {
			done++
			continue
		}
		r.fails(t, 1, "my-scheduler", "another")
	}
	if done == 0 {
		t.Fatalf("neither of two deployments came through:\n%s\n%s", results[0], results[1])
	}
	m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
}

// leftNothing fails the test if the cluster holds anything of a scheduler that was never deployed.
func (m master) leftNothing(t *testing.T, name string) {
	t.Helper()
	left := m.kubectl(t, "get", "deployments,pods,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings",
		"-A", "-l", "app.kubernetes.io/instance="+name+",!pmk-sched.io/revision", "-o", "name")
	if strings.TrimSpace(left) != "" {
		t.Errorf("%s left objects behind: %s", fmt.Sprintf("a failed deployment of %s", name), left)
	}
}
