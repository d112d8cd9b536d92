package main

import (
	"testing"

	"github.com/urfave/cli/v2"
)

// The command for each node has every flag of the command that printed it.
func TestCommandForEachNodeHasAllFlags(t *testing.T) {
	t.Setenv("PMK_SCHED_LOG_LEVEL", "debug")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one": {
			[]string{"replace", "--image", "localhost/x:v1", "--all-nodes", "-o", "json"},
			"pmk-sched --log-level debug replace --yes --image localhost/x:v1",
		},
		"all": {
			[]string{
				"--node-root", "/first", "replace", "--all-nodes", "--pod-image", "localhost/pmk-sched:v1", "--yes", "--node", "n1",
				"--image", "localhost/x:v1", "-f", "my file.yaml", "--preset", "binpack", "--config", "it's.yaml",
				"--policy-configmap", "--plugins", "a", "--plugins", "b", "--dry-run", "--timeout", "1m30s", "--stable-for", "40s",
				"--node-root", "/host", "--kubeconfig", "/etc/kubernetes/admin.conf", "--log-level", "info", "--cluster", "c",
			},
			"pmk-sched --kubeconfig /etc/kubernetes/admin.conf --cluster c --node-root /host --log-level info replace --yes " +
				"--image localhost/x:v1" +
				` --file 'my file.yaml' --preset binpack --config 'it'\''s.yaml' --policy-configmap --plugins a --plugins b --dry-run --timeout 1m30s --stable-for 40s`,
		},
		"values after =": {
			[]string{"replace", "--stable-for=40s", "--policy-configmap=false"},
			"pmk-sched --log-level debug replace --yes --policy-configmap=false --stable-for 40s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			err := withCommand(t, []string{"replace"}, c.args, func(c *cli.Context, _ *ui) error {
				got = nodeCommandLine(c)
				return nil
			})
			if err != nil || got != c.want {
				t.Errorf("got  %s\nwant %s\n%v", got, c.want, err)
			}
		})
	}
}
