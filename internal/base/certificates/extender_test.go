package certificates_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func request(years int) certificates.Request {
	return certificates.Request{
		Name: "my-extender", DNS: []string{"my-extender.kube-system.svc",
			"localhost"}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		Now: born.AddDate(years, 0, 0),
	}
}

func ensure(t *testing.T, live certificates.Set, r certificates.Request) (certificates.Set, []string) {
	t.Helper()
	set, made, err := certificates.Ensure(live, r)
	if err != nil {
		t.Fatal(err)
	}
	return set, made
}

func TestWhatIsGoodIsKeptAndWhatIsNotIsMadeAnew(t *testing.T) {
	all := []string{"certificate authority", "serving certificate", "client certificate"}
	leaves := all[1:]
	first, _ := ensure(t, certificates.Set{}, request(0))
	other, _ := ensure(t, certificates.Set{}, request(0))
	cases := map[string]struct {
		live   certificates.Set
		change func(*certificates.Request)
		want   []string
	}{
		"nothing there":            {certificates.Set{}, func(*certificates.Request) {}, all},
		"again":                    {first, func(*certificates.Request) {}, nil},
		"three years later":        {first, func(r *certificates.Request) { *r = request(3) }, nil},
		"near the end":             {first, func(r *certificates.Request) { *r = request(4) }, leaves},
		"near the authority's end": {first, func(r *certificates.Request) { *r = request(15) }, all},
		"another name": {first, func(r *certificates.Request) { r.DNS = []string{"other.kube-system.svc"} },
			leaves[:1]},
		"another address": {first,
			func(r *certificates.Request) { r.Addresses = append(r.Addresses, net.IPv4(10, 96, 0, 7)) }, leaves[:1]},
		"signed by another": {certificates.Set{CA: first.CA, Server: other.Server, Client: first.Client},
			func(*certificates.Request) {}, leaves[:1]},
		"key of another": {certificates.Set{CA: certificates.Pair{Cert: first.CA.Cert, Key: other.CA.Key},
			Server: first.Server}, func(*certificates.Request) {}, all},
		"serving one for a client": {certificates.Set{CA: first.CA, Server: first.Server, Client: first.Server},
			func(*certificates.Request) {}, leaves[1:]},
		"garbage in place of a key": {certificates.Set{CA: first.CA, Server: certificates.Pair{Cert: first.Server.Cert,
			Key: []byte("x")}, Client: first.Client}, func(*certificates.Request) {}, leaves[:1]},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(0)
			c.change(&r)
			set, made := ensure(t, c.live, r)
			if diff := cmp.Diff(c.want, made); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
			if _, again := ensure(t, set, r); len(again) > 0 {
				t.Errorf("and at once again %v", again)
			}
		})
	}
}

func TestAClientAndAServerOfOneSetTrustEachOtherAndNoOther(t *testing.T) {
	set, _ := ensure(t, certificates.Set{}, request(0))
	other, _ := ensure(t, certificates.Set{}, request(0))
	handshake := func(server, client certificates.Set, name string) error {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		now := func() time.Time { return born.AddDate(0, 1, 0) }
		pool := func(s certificates.Set) *x509.CertPool {
			p := x509.NewCertPool()
			p.AppendCertsFromPEM(s.CA.Cert)
			return p
		}
		pair := func(p certificates.Pair) []tls.Certificate {
			both, err := tls.X509KeyPair(p.Cert, p.Key)
			if err != nil {
				t.Fatal(err)
			}
			return []tls.Certificate{both}
		}
		done := make(chan error, 1)
		go func() {
			done <- tls.Server(a, &tls.Config{Certificates: pair(server.Server), ClientCAs: pool(server),
				ClientAuth: tls.RequireAndVerifyClientCert, Time: now, MinVersion: tls.VersionTLS12,
				MaxVersion: tls.VersionTLS12}).Handshake()
			_ = a.Close()
		}()
		err := tls.Client(b, &tls.Config{Certificates: pair(client.Client), RootCAs: pool(client), ServerName: name,
			Time: now, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}).Handshake()
		_ = b.Close()
		if served := <-done; err == nil {
			err = served
		}
		return err
	}
	for _, name := range []string{"my-extender.kube-system.svc", "127.0.0.1"} {
		if err := handshake(set, set, name); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if handshake(set, set, "elsewhere.kube-system.svc") == nil || handshake(set, other, "127.0.0.1") == nil {
		t.Error("a foreign name or authority is trusted")
	}
}

func TestAKeyIsNeverPrinted(t *testing.T) {
	set, _ := ensure(t, certificates.Set{}, request(0))
	for _, text := range []string{fmt.Sprint(set), fmt.Sprintf("%+v", set), fmt.Sprintf("%#v", set)} {
		if strings.Contains(text, "PRIVATE") || strings.Contains(text, "45, 45, 45") {
			t.Errorf("printed: %s", text)
		}
	}
}
