//go:build linux

package install

import (
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

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
