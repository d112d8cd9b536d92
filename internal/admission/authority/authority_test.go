package authority

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

func newAuthority(t *testing.T, namespace string) *Authority {
	t.Helper()
	now := time.Now()
	ca, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "test"},
		KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(namespace, ca.Pair)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestServingCertificatesAreRenewed(t *testing.T) {
	const day = 24 * time.Hour
	first, now := newAuthority(t, "ns"), time.Now()
	s := &Serving{log: zap.NewNop(), now: func() time.Time { return now }}
	leaf := func(a *Authority) *x509.Certificate {
		t.Helper()
		if err := s.renew(a); err != nil {
			t.Fatal(err)
		}
		cert, err := s.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: a.ClientConfig().RootCAs, CurrentTime: now,
			DNSName: "pmk-sched-admission.ns.svc"}); err != nil {
			t.Errorf("after %s: %v", now.Sub(s.now()), err)
		}
		return cert.Leaf
	}
	original := leaf(first)
	if life := original.NotAfter.Sub(now); life < 29*day || life > 31*day {
		t.Errorf("valid for %s", life)
	}
	now = now.Add(19 * day)
	if leaf(first) != original {
		t.Error("renewed after 19 days")
	}
	now = now.Add(2 * day)
	renewed := leaf(first)
	if renewed == original {
		t.Error("not renewed after 21 days")
	}
	other := newAuthority(t, "ns")
	if leaf(other) == renewed || s.Token() != other.Token() || other.Token() == first.Token() {
		t.Error("not renewed for another authority")
	}
}

// The path in the configuration is a secret, and the key does not follow from it.
func TestTokensDependOnTheKey(t *testing.T) {
	a := newAuthority(t, "ns")
	again, err := parse("ns", a.Pair)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Token()) != 32 || again.Token() != a.Token() || newAuthority(t, "ns").Token() == a.Token() ||
		strings.Contains(string(a.Cert), a.Token()) {
		t.Error(a.Token())
	}
}

func TestPatchesOfWebhookConfigurations(t *testing.T) {
	a := newAuthority(t, "ns")
	path := func(rest string) *string { return new("/" + a.Token() + rest) }
	service := func(name, namespace string, path *string) *admissionregistrationv1.WebhookClientConfig {
		return &admissionregistrationv1.WebhookClientConfig{CABundle: a.Cert,
			Service: &admissionregistrationv1.ServiceReference{Name: name, Namespace: namespace, Path: path}}
	}
	without := service(Service, "ns", path("/arbiter"))
	without.CABundle = nil
	for name, c := range map[string]struct {
		hook hook
		path string // of the patch, or ""
	}{
		"new":                    {hook{Arbiter, service(Service, "ns", nil)}, "/arbiter"},
		"without an authority":   {hook{Arbiter, without}, "/arbiter"},
		"up to date":             {hook{Arbiter, service(Service, "ns", path("/arbiter"))}, ""},
		"of a former authority":  {hook{Arbiter, service(Service, "ns", new("/old/arbiter"))}, "/arbiter"},
		"a route":                {hook{"my.new.route.pmk-sched.io", service(Service, "ns", nil)}, "/route/my.new"},
		"of another namespace":   {hook{Arbiter, service(Service, "other", nil)}, ""},
		"of another Service":     {hook{Arbiter, service("other", "ns", nil)}, ""},
		"with a URL":             {hook{Arbiter, &admissionregistrationv1.WebhookClientConfig{}}, ""},
		"of another name":        {hook{"x.example.com", service(Service, "ns", nil)}, ""},
		"a route without a name": {hook{".route.pmk-sched.io", service(Service, "ns", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			other := hook{"x.example.com", service("other", "ns", nil)}
			text, err := a.patch([]hook{other, c.hook})
			if err != nil {
				t.Fatal(err)
			}
			if text == nil && c.path == "" {
				return
			}
			var all []operation
			if err := json.Unmarshal(text, &all); err != nil || len(all) != 3 {
				t.Fatalf("%v: %s", err, text)
			}
			if all[0] != (operation{"test", "/webhooks/1/name", c.hook.name}) ||
				all[2] != (operation{"add", "/webhooks/1/clientConfig/service/path", "/" + a.Token() + c.path}) ||
				c.path == "" {
				t.Errorf("patch %s", text)
			}
		})
	}
}

func TestADamagedAuthorityIsReported(t *testing.T) {
	for name, pair := range map[string]certificates.Pair{
		"nothing": {}, "no key": {Cert: newAuthority(t, "ns").Cert},
		"the key of another": {Cert: newAuthority(t, "ns").Cert, Key: newAuthority(t, "ns").Key},
	} {
		if _, err := parse("ns", pair); err == nil || !strings.Contains(err.Error(), "ns/"+SecretName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
