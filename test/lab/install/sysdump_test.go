//go:build linux && labs

package install

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/archives"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The archive contains the logs and metrics of a running scheduler, and none of the keys and tokens
// in the Secrets and in the files of the node.
func TestSysdumpHasNoSecretOfTheLab(t *testing.T) {
	for _, mode := range []string{"node", "node-inline", "serviceaccount"} {
		t.Run(mode, func(t *testing.T) {
			n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
			n.Deploy(t, name, n.Image(t), "--credentials", mode)
			file := filepath.Join(t.TempDir(), "bug.tar.gz")
			n.PMKSched(t, "sysdump", "--archive", file).OK(t)
			files := archives.Read(t, file)
			all := ""
			for name, content := range files {
				all += name + "\n" + content + "\n"
			}
			for _, want := range []string{"bug/objects/kube-system/Deployment_" + name + ".yaml",
				"bug/revisions/kube-system/" + name + "/history.json", "successfully acquired lease",
				"bug/metrics/kube-system/kube-scheduler-" + n.NodeName + ".txt", "scheduler_schedule_attempts_total"} {
				if !strings.Contains(all, want) {
					t.Errorf("the archive lacks %s", want)
				}
			}
			for where, secret := range secretsOfLab(t, n) {
				if strings.Contains(all, secret) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(secret))) {
					t.Errorf("the archive has %s", where)
				}
			}
		})
	}
}

// secretsOfLab returns the secrets of the lab, by where they are: data of Secrets that is not
// public, and each line of the private keys and of the kubeconfigs' keys on the node.
func secretsOfLab(t *testing.T, n *labs.Node) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := run.Decode[corev1.SecretList](t, n.Kubectl(t, "get", "secrets", "-A", "-o", "json"))
	for _, secret := range list.Items {
		for key, value := range secret.Data {
			if key != "namespace" && !strings.HasSuffix(key, ".crt") && len(value) >= 16 {
				found["key "+key+" of Secret "+secret.Namespace+"/"+secret.Name] = string(value)
			}
		}
	}
	keys := n.Shell(t,
		`find /etc/kubernetes -name '*.key' -exec cat {} + ; grep -rhoE 'client-key-data: .*' /etc/kubernetes --include='*.conf' | sed 's/client-key-data: //'`)
	for line := range strings.Lines(keys) {
		if line = strings.TrimSpace(line); len(line) >= 32 && !strings.HasPrefix(line, "-----") {
			found["a line of a private key, "+line[:8]+"…"] = line
		}
	}
	if len(found) == 0 {
		t.Fatal("the lab has no secrets")
	}
	return found
}
