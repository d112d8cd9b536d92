package install

import (
	"strings"
	"testing"
)

// Each way of proving who the scheduler is that is not the default of a master (the main job shows that one), on each shape of
// master: it schedules, may do all that it wants to, and no key is where it was not asked for.
func TestEveryKindOfCredentialsSchedules(t *testing.T) {
	for _, want := range layouts {
		for _, credentials := range []string{"node-inline", "hostpath", "serviceaccount"} {
			t.Run(want.layout+"/"+credentials, func(t *testing.T) {
				m := lend(t, want.layout)
				image := m.image(t)
				t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
				m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image, "--credentials", credentials).ok(t)
				m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)

				if credentials != "node-inline" {
					m.holdsNoKeyInConfigMaps(t)
				}
				logs := m.kubectl(t, "logs", "-n", "kube-system", "deployment/my-scheduler")
				if strings.Contains(logs, "forbidden") {
					t.Errorf("the scheduler may not do all that it wants to:\n%s", logs)
				}
			})
		}
	}
}

// holdsNoKeyInConfigMaps fails the test if a private key of the scheduler can be read with the right to read ConfigMaps.
func (m master) holdsNoKeyInConfigMaps(t *testing.T) {
	t.Helper()
	maps := m.kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance=my-scheduler", "-o", "yaml")
	if !strings.Contains(maps, "kind: ConfigMap") || strings.Contains(maps, "client-key-data") || strings.Contains(maps, "PRIVATE KEY") {
		t.Errorf("the ConfigMaps hold a private key, or are not there:\n%s", maps)
	}
}
