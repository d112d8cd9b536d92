package install

import (
	"strings"
	"testing"
)

// Platform9's article prints a configuration for another release, with wrong indents; both forms deploy, and each change is told.
func TestArticleConfigurationDeploysAndSchedules(t *testing.T) {
	for _, file := range []string{"my-scheduler.yaml", "as-printed.yaml"} {
		t.Run(file, func(t *testing.T) {
			m := lend(t, "pmk")
			image := m.image(t)
			t.Cleanup(func() { m.uninstall(t, "my-scheduler") })
			deployed := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image, "--config", "../../testdata/article/"+file).ok(t)
			for _, text := range []string{"v1beta3", "NodeResourcesLeastAllocated", "NodeResourcesFit", "healthzBindAddress", "metricsBindAddress"} {
				if !strings.Contains(deployed.stderr, text) {
					t.Errorf("the person is not told about %s: %s", text, deployed)
				}
			}
			m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
			config := m.kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance=my-scheduler", "-o", "yaml")
			for _, text := range []string{"kubescheduler.config.k8s.io/v1beta3", "LeastAllocated", "weight: 3"} {
				if !strings.Contains(config, text) {
					t.Errorf("the deployed configuration lacks %q:\n%s", text, config)
				}
			}
		})
	}
}
