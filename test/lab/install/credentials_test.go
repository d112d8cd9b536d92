//go:build linux

package install

import (
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// With each kind of credentials other than the default, which TestMainJob has, the scheduler
// schedules, is refused nothing, and no private key is where it was not asked for.
func TestEveryKindOfCredentialsSchedules(t *testing.T) {
	t.Parallel()
	for _, c := range credentials {
		t.Run(c.layout+"/"+c.kind, func(t *testing.T) {
			n, name := labs.Shared(t, c.layout), labs.SchedulerName(t)
			n.Deploy(t, name, n.Image(t), "--credentials", c.kind)
			n.PMKSched(t, "verify", "--name", name).OK(t)
			if c.kind != "node-inline" {
				hasNoKeyInConfigMaps(t, n, name)
			}
			showsCredentials(t, n, name, c.kind)
			n.CleanLog(t, name)
		})
	}
}

// hasNoKeyInConfigMaps fails the test if a private key of the scheduler can be read with the right
// to read ConfigMaps.
func hasNoKeyInConfigMaps(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	maps := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o", "yaml")
	if !strings.Contains(maps, "kind: ConfigMap") || strings.Contains(maps, "client-key-data") ||
		strings.Contains(maps, "PRIVATE KEY") {
		t.Errorf("the ConfigMaps hold a private key, or do not exist:\n%s", maps)
	}
}

type credentialsReport struct {
	Mode    string     `json:"mode"`
	Subject string     `json:"subject"`
	Issuer  string     `json:"issuer"`
	Expires *time.Time `json:"expires"`
	Source  string     `json:"source"`
}

// nothingToRefresh is the output of `credentials refresh`, by kind of credentials, when there is
// nothing to do. FILE is the kubeconfig of the node's own scheduler.
var nothingToRefresh = map[string]string{
	"node":           "the scheduler already uses the certificate of FILE",
	"node-inline":    "the scheduler already uses the certificate of FILE",
	"hostpath":       "FILE of this node was written on ",
	"serviceaccount": ": the kubelet requests a token for 1h0m7s and renews it before it expires",
}

// showsCredentials fails the test unless `credentials show` describes the credentials of a
// scheduler without their key, and `credentials refresh` finds nothing to do.
func showsCredentials(t *testing.T, n *labs.Node, name, kind string) {
	t.Helper()
	shown := n.PMKSched(t, "credentials", "show", "--name", name, "-o", "json").OK(t)
	got := run.Decode[credentialsReport](t, shown.Stdout)
	if got.Mode != kind || got.Source == "" || strings.Contains(shown.Stdout, "PRIVATE KEY") {
		t.Errorf("credentials: %s", shown)
	}
	var file string
	for _, l := range layouts {
		if l.layout == n.Layout {
			file = l.kubeconfig
		}
	}
	n.PMKSched(t, "credentials", "refresh", "--name", name).OK(t).Prints(t, "nothing to refresh: credentials "+kind,
		strings.ReplaceAll(nothingToRefresh[kind], "FILE", file))
	if kind == "serviceaccount" {
		if got.Subject != "system:serviceaccount:kube-system:"+name || got.Expires != nil {
			t.Errorf("credentials: %s", shown)
		}
		return
	}
	if !strings.Contains(got.Subject, "system:kube-scheduler") || got.Issuer == "" || got.Expires == nil ||
		got.Expires.Before(time.Now()) {
		t.Errorf("credentials: %s", shown)
	}
}
