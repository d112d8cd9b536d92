//go:build linux

package commands

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// nodeCredentials returns credentials of a control-plane node that expire at until.
func nodeCredentials(t *testing.T, until time.Time) *inspect.NodeCredentials {
	t.Helper()
	signed, err := certificates.NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: "system:kube-scheduler"}, NotBefore: until.AddDate(-1, 0, 0), NotAfter: until,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &inspect.NodeCredentials{
		Path: "/etc/kubernetes/scheduler.conf", Server: "https://localhost:443", User: "system:kube-scheduler",
		Expires: until,
		CA:      signed.Cert, Cert: signed.Cert, Key: signed.Key,
	}
}

func TestStatusWarnsOfTheCopiedCertificateUntilTheNodesRenewedOneIsDeployed(t *testing.T) {
	ctx := testContext(t)
	ns := server.Namespace(t)
	client, err := apply.New(server.Config(), apply.Options{Log: zaptest.NewLogger(t), ControllerGrace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		owned, err := client.Owned(ctx, "copier", ns)
		if err == nil {
			_, err = client.Delete(ctx, owned)
		}
		if err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	for _, c := range []struct {
		mode  string
		until time.Time
		warns bool
	}{
		{deploy.CredentialsNode, now.AddDate(0, 0, 20), true},
		{deploy.CredentialsNode, now.AddDate(1, 0, 0), false}, // renewed by kubeadm
		{deploy.CredentialsNodeInline, now.AddDate(0, 0, 10), true},
		{deploy.CredentialsServiceAccount, time.Time{}, false},
	} {
		request := &v1alpha1.CustomScheduler{}
		request.Name, request.Namespace, request.Spec.Credentials = "copier", ns, c.mode
		facts := deploy.Facts{Image: "localhost/s:v1", Branch: "v1.24.3", Now: now}
		if !c.until.IsZero() {
			facts.Node = nodeCredentials(t, c.until)
		}
		plan, err := deploy.NewPlan(request, facts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Apply(ctx, plan.Objects); err != nil {
			t.Fatal(err)
		}
		s := &second{name: "copier", ns: ns, client: client, release: testRelease(t)}
		w := s.read(ctx, t)
		expiring := slices.ContainsFunc(w.Findings(now),
			func(f health.Finding) bool { return f.Code == health.CertificateExpiring && f.Namespace == ns })
		if expiring != c.warns {
			t.Errorf("%s until %s: findings %v", c.mode, c.until, w.Findings(now))
		}
		switch found := w.Certificate; {
		case c.until.IsZero() && found != nil, !c.until.IsZero() &&
			(found == nil || !found.Expires.Equal(c.until.UTC().Truncate(time.Second))):
			t.Errorf("%s: got certificate %+v, want one until %s", c.mode, found, c.until)
		}
	}
}
