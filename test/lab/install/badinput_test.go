//go:build linux

package install

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// These tests check the messages for flags and files that cannot work on a working cluster.

func TestDeployReportsAnImageThatCannotBePulledAndUndoesEverything(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	r := n.TryDeploy(t, name, "localhost/not-there:v1", "--timeout", "2m")
	r.Fails(t, 1, "localhost/not-there:v1", "pull", "hint: ")
	n.LeftNothing(t, name)
}

// A dry run reports the changes that deploy would make, and makes none. check runs only the
// preflight checks.
func TestDryRunAndCheckChangeNothing(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	image := n.Image(t)
	dry := n.TryDeploy(t, name, image, "--dry-run").OK(t)
	dry.Prints(t, "Deployment/kube-system/"+name+" created")
	if left := n.Left(t, name, ""); left != "" {
		t.Errorf("the dry run made objects: %s", left)
	}
	n.PMKSched(t, "check", "--name", name, "--image", image, "-o", "json").OK(t).Prints(t, "namespace-exists",
		"control-plane-node")
	n.PMKSched(t, "check", "--name", name, "--image", image, "--namespace", "no-such-namespace").Fails(t, 3,
		"no-such-namespace")
	if left := n.Left(t, name, ""); left != "" {
		t.Errorf("check made objects: %s", left)
	}
}

func TestDeployRefusesAPortThatIsTaken(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	r := n.PMKSched(t, "deploy", "--name", name, "--image", n.Image(t), "--port", "10259")
	r.Fails(t, 2, "10259", "in use", "is free")
	n.LeftNothing(t, name)
}

func TestDeployRefusesAConfigurationThatCannotWorkBeforeItAppliesAnything(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image := n.Image(t)
	for problem, c := range map[string]struct{ config, message string }{
		"malformed":  {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: [", "config.yaml:2"},
		"empty":      {"", "empty"},
		"wrong kind": {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "Pod"},
		"unknown plugin": {
			"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: " +
				name + "\n  plugins:\n    score:\n      enabled:\n      - name: NoSuchPlugin\n", "NoSuchPlugin"},
		"unknown field": {
			"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparalelism: 4\n", "paralelism"},
	} {
		t.Run(problem, func(t *testing.T) {
			n.TryDeploy(t, name, image, "--config", run.WriteFile(t, "config.yaml", c.config)).Fails(t, 2, c.message)
			n.LeftNothing(t, name)
		})
	}
}

func TestDeployWithoutPermissionNamesTheUser(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	kubeconfig := kubeconfigOf(t, n, name)
	args := append([]string{"--kubeconfig", kubeconfig}, n.DeployArgs(t, name, n.Image(t))...)
	n.PMKSched(t, args...).Fails(t, 1, "system:serviceaccount:default:"+name, "cannot")
	n.LeftNothing(t, name)
}

func TestDetectWithoutPrivilegesWarns(t *testing.T) {
	n := labs.Shared(t, "pmk")
	r := n.PMKSched(t, "--kubeconfig", kubeconfigOf(t, n, labs.SchedulerName(t)), "detect", "-o", "json").OK(t)
	got := run.Decode[detected](t, r.Stdout)
	if got.Server.Version != labs.Release || got.Source.Branch != labs.Release {
		t.Errorf("the release is not found without privileges: %s", r)
	}
	if len(got.Warnings) == 0 {
		t.Errorf("no warning about what could not be read: %s", r)
	}
}

// kubeconfigOf makes a ServiceAccount without permissions and returns the path of its kubeconfig.
func kubeconfigOf(t *testing.T, n *labs.Node, account string) string {
	t.Helper()
	n.Apply(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+account+", namespace: default}\n")
	token := n.Kubectl(t, "create", "token", account, "-n", "default")
	file := run.WriteFile(t, "kubeconfig", n.Kubectl(t, "config", "view", "--raw", "--minify", "--flatten"))
	n.Kubectl(t, "--kubeconfig", file, "config", "set-credentials", account, "--token", token)
	n.Kubectl(t, "--kubeconfig", file, "config", "set-context", "--current", "--user", account)
	return file
}

func TestDeployRefusesANodeKubeconfigThatCannotBeUsed(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image := n.Image(t)
	expired := expiredCertificate(t)
	for problem, c := range map[string]struct{ content, message string }{
		"expired": {
			"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: local, user: u}}]\n" +
				"clusters: [{name: local, cluster: {server: 'https://localhost:443'}}]\nusers: [{name: u, user: " +
				"{client-certificate-data: " + expired + "}}]\n", "expired"},
		"not a file": {"\tnot yaml", "not a kubeconfig"},
	} {
		t.Run(problem, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--node-root", root}, n.DeployArgs(t, name, image, "--credentials", "node")...)
			n.PMKSched(t, args...).Fails(t, 1, c.message, "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
			n.LeftNothing(t, name)
		})
	}
}

// expiredCertificate is the base64 of a PEM certificate of the scheduler's user that expired an
// hour ago.
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

func TestDeployRefusesANameThatIsNotADNSLabel(t *testing.T) {
	n := labs.Shared(t, "pmk")
	for _, name := range []string{"My_Scheduler", "a.b", strings.Repeat("x", 64), "-x", "default-scheduler"} {
		n.PMKSched(t, "deploy", "--name", name, "--image", "localhost/x:v1").Fails(t, 2, name)
	}
}
