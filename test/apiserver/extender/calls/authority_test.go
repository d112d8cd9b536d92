//go:build linux

package calls

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// certify makes the certificates of an extender on loopback, as `extender deploy` does, as of some
// time.
func certify(t *testing.T, live certificates.Set, now time.Time) certificates.Set {
	t.Helper()
	set, _, err := certificates.Ensure(live, certificates.Request{Name: "test", DNS: []string{"localhost"},
		Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// files writes certificates to a directory, atomically, as a mounted Secret is replaced.
func files(t *testing.T, dir string, set certificates.Set) {
	t.Helper()
	for name, text := range map[string][]byte{
		"tls.crt": set.Server.Cert, "tls.key": set.Server.Key, "ca.crt": set.CA.Cert, "client.crt": set.Client.Cert,
		"client.key": set.Client.Key,
	} {
		if err := os.WriteFile(filepath.Join(dir, "new"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// secured prepares an extender that serves HTTPS with the certificates of a directory.
func (s scene) secured(t *testing.T, dir string, args ...string) *controlplane.Extender {
	t.Helper()
	e := s.NewExtender(t, "https", append([]string{
		"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-private-key-file", filepath.Join(dir, "tls.key"),
		"--config", configure(t, "[{name: BlockAll, args: {namespaces: [none]}}]"),
	}, args...)...)
	e.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout: 10 * time.Second}
	return e
}

// authorities: a scheduler accepts only server certificates of its configured authority, and an
// extender can require a client certificate.
func authorities(t *testing.T, s scene) {
	dir := t.TempDir()
	set, other := certify(t, certificates.Set{}, time.Now()), certify(t, certificates.Set{}, time.Now())
	files(t, dir, set)
	for name, c := range map[string]struct {
		tls  *profiles.ExtenderTLS
		args []string
		want string // in the pod's event. If it is empty, the pod is bound.
	}{
		"our authority": {tls: &profiles.ExtenderTLS{CAData: set.CA.Cert}},
		"another authority": {tls: &profiles.ExtenderTLS{CAData: other.CA.Cert},
			want: "certificate signed by unknown authority"},
		"no certificate": {tls: &profiles.ExtenderTLS{CAData: set.CA.Cert},
			args: []string{"--client-ca-file", filepath.Join(dir, "ca.crt")}, want: "code 401"},
		"our certificate": {tls: &profiles.ExtenderTLS{CAData: set.CA.Cert, CertFile: filepath.Join(dir, "client.crt"),
			KeyFile: filepath.Join(dir, "client.key")}, args: []string{"--client-ca-file", filepath.Join(dir, "ca.crt")}},
		"its own name": {tls: &profiles.ExtenderTLS{CAData: set.CA.Cert, ServerName: "localhost"}},
		"the name of others": {tls: &profiles.ExtenderTLS{CAData: set.CA.Cert, ServerName: "example.com"},
			want: "certificate is valid for localhost, not example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			group, _ := s.group(ctx, t, "a", "b")
			e := s.secured(t, dir, c.args...)
			e.Start()
			e.Await(ctx, t, "")
			asked := extender(e.URL)
			asked.EnableHTTPS, asked.TLS = true, c.tls
			s.start(t, group, asked)
			if c.want == "" {
				s.Place(ctx, t, group, s.pod(group, "p"))
				return
			}
			s.Create(ctx, t, group, s.pod(group, "p"))
			run.Eventually(t, "the event says why", func(ctx context.Context) (bool, string) {
				said := strings.Join(s.Failures(ctx, t, group, "p"), "; ")
				return strings.Contains(said, c.want) && strings.Contains(said, e.URL), said
			})
			if s.Unbound(ctx, t, group) != 1 {
				t.Error("the pod is bound nevertheless")
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		unverified := extender("https://127.0.0.1:1")
		unverified.EnableHTTPS = true
		render := profiles.Render
		if s.policy {
			render = profiles.RenderPolicy
		}
		_, err := render(profiles.Request{Release: s.Release, SchedulerName: s.schedulerName("asking"),
			Kubeconfig: s.Kubeconfig, Extenders: []profiles.Extender{unverified}})
		if err == nil || !strings.Contains(err.Error(), "accepts any certificate") {
			t.Errorf("rendered with the error %v", err)
		}
	})
}
