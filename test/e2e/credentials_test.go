package e2e

import (
	"strings"
	"testing"
)

// Each way of proving who the scheduler is, on each shape of master: it schedules, and no key is where it was not asked for.
func TestEveryKindOfCredentialsSchedules(t *testing.T) {
	for _, want := range layouts {
		for _, credentials := range []string{"node", "node-inline", "hostpath", "serviceaccount"} {
			t.Run(want.layout+"/"+credentials, func(t *testing.T) {
				m := lend(t, want.layout)
				image := m.image(t)
				t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
				m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image, "--credentials", credentials).ok(t)
				m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)

				maps := m.kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance=my-scheduler", "-o", "yaml")
				if keyInMap := strings.Contains(maps, "client-key-data") || strings.Contains(maps, "PRIVATE KEY"); keyInMap != (credentials == "node-inline") {
					t.Errorf("private key in a ConfigMap: %v", keyInMap)
				}
				logs := m.kubectl(t, "logs", "-n", "kube-system", "deployment/my-scheduler")
				if strings.Contains(logs, "forbidden") {
					t.Errorf("the scheduler may not do all that it wants to:\n%s", logs)
				}
			})
		}
	}
}
