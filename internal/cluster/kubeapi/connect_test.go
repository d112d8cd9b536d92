package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// kubeconfig returns a kubeconfig in one line of flow style. user may be a field with a comma.
func kubeconfig(server, cluster, user, current string) string {
	return "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {" + cluster + " server: '" + server +
		"'}}], users: [{name: u, user: {" + user + "}}], contexts: [{name: x, context: {cluster: c, user: u}}, " +
		"{name: b, context: {cluster: c, user: u}}], current-context: '" + current + "'}\n"
}

func TestKubeconfigsThatSelectNoCluster(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"good": kubeconfig("https://a", "", "token: t", "x"), "none": kubeconfig("https://a", "", "token: t", ""),
		"gone": kubeconfig("https://a", "", "token: t", "old"), "empty": "",
		"deleted": "apiVersion: v1\nkind: Config\nclusters: null\ncontexts: null\nusers: null\n",
		"nobody":  kubeconfig("https://a", "", "auth-provider: {name: azure}", "x"),
		"half":    kubeconfig("https://a", "", "auth-provider: {name: oidc, config: {client-id: a}}", "x"),
		"pod":     "apiVersion: v1\nkind: Pod\n",
		"exec": kubeconfig("https://a", "",
			"exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}", "x"),
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", dir)
	const nothing = "find a cluster: there is no kubeconfig"
	cases := map[string]struct {
		env     string
		options ConnectOptions
		want    string // DIR stands for the directory
		none    bool   // render needs no cluster then
	}{
		"no current context": {options: ConnectOptions{Kubeconfig: at("none")},
			want: "read kubeconfig: DIR/none has no current context; it has b, x"},
		"wrong current context": {options: ConnectOptions{Kubeconfig: at("gone")},
			want: `read kubeconfig: DIR/gone has no context "old": expected one of b, x`},
		"wrong --context": {options: ConnectOptions{Kubeconfig: at("good"), Context: "y"},
			want: `read kubeconfig: DIR/good has no context "y": expected one of b, x`},
		"wrong --cluster": {options: ConnectOptions{Kubeconfig: at("good"), Cluster: "y"},
			want: `read kubeconfig: DIR/good has no cluster "y": expected one of c`},
		"wrong --user": {options: ConnectOptions{Kubeconfig: at("good"), User: "y"},
			want: `read kubeconfig: DIR/good has no user "y": expected one of u`},
		"a named file that is missing": {options: ConnectOptions{Kubeconfig: at("missing")},
			want: "read kubeconfig: stat DIR/missing: no such file or directory"},
		"$KUBECONFIG of a missing file": {env: at("missing"), want: nothing + ": DIR/missing does not exist", none: true},
		"$KUBECONFIG of two files": {env: at("missing") + ":" + at("empty"), none: true,
			want: nothing + ": DIR/missing does not exist, DIR/empty has no context"},
		"the context of a missing file": {env: at("good") + ":" + at("missing"), options: ConnectOptions{Context: "y"},
			want: `read kubeconfig: DIR/good has no context "y": expected one of b, x, DIR/missing does not exist`},
		"after kind delete cluster": {options: ConnectOptions{Kubeconfig: at("deleted")},
			want: nothing + ": DIR/deleted has no context", none: true},
		"another object":     {options: ConnectOptions{Kubeconfig: at("pod")}, want: `read kubeconfig: error loading config file`},
		"a removed provider": {options: ConnectOptions{Kubeconfig: at("nobody")}, want: "kubelogin"},
		"half of oidc":       {options: ConnectOptions{Kubeconfig: at("half")}, want: "idp-issuer-url"},
		"an old exec plugin": {options: ConnectOptions{Kubeconfig: at("exec")}, want: "client.authentication.k8s.io/v1alpha1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.env)
			_, err := Connect(tc.options)
			want := strings.ReplaceAll(tc.want, "DIR", dir)
			if err == nil || !strings.Contains(err.Error(), want) || !problem.IsInvalid(err) {
				t.Errorf("got  %v (input is wrong: %t)\nwant %s", err, problem.IsInvalid(err), want)
			}
			if errors.Is(err, ErrNoKubeconfig) != tc.none {
				t.Errorf("no kubeconfig: %t", !tc.none)
			}
		})
	}
}

func TestHintForAKubeconfigThatTheUserMayNotRead(t *testing.T) {
	for text, want := range map[string]bool{
		`error loading config file "/etc/a": open /etc/a: permission denied`: true,
		`error loading config file "/etc/a": yaml: line 1`:                   false,
	} {
		if got := unreadableHint(errors.New(text)); strings.Contains(got, "run as root") != want || (got != "") != want {
			t.Errorf("%s: hint %q", text, got)
		}
	}
}

func TestTheTokenOfAnOIDCProviderIsSent(t *testing.T) {
	// {"alg": "none"} and {"exp": 4102444800}, the year 2100
	const token = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln"
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	text := kubeconfig(server.URL, "insecure-skip-tls-verify: true,", "auth-provider: {name: oidc, config: {client-id: a, "+
		"id-token: "+token+", idp-issuer-url: 'https://127.0.0.1:1/dex', refresh-token: r}}", "x")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(t, ConnectOptions{Kubeconfig: file}); err != nil || got != "Bearer "+token {
		t.Errorf("authorization %q: %v", got, err)
	}
}

// get sends a request to the server of a kubeconfig.
func get(t *testing.T, o ConnectOptions) error {
	t.Helper()
	cfg, err := Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestTheHintNamesTheProblemOfACertificate(t *testing.T) {
	ca, err := certificates.NewAuthority(x509.Certificate{NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("no certificate")
	}
	sign := func(template x509.Certificate) tls.Certificate {
		template.DNSNames = []string{"api"}
		pair, err := ca.Sign(template)
		if err != nil {
			t.Fatal(err)
		}
		made, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	good := sign(x509.Certificate{NotAfter: time.Now().Add(time.Hour)})
	old := sign(x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	cases := map[string]struct {
		server *tls.Config // nil: no TLS
		name   string      // tls-server-name
		trust  bool
		want   string
	}{
		"another name":   {&tls.Config{Certificates: []tls.Certificate{good}}, "", true, "tls-server-name"},
		"the right name": {&tls.Config{Certificates: []tls.Certificate{good}}, "api", true, ""},
		"another CA":     {&tls.Config{Certificates: []tls.Certificate{good}}, "api", false, "did not sign"},
		"expired":        {&tls.Config{Certificates: []tls.Certificate{old}}, "api", true, "renew it"},
		"no TLS":         {nil, "api", true, "does not use TLS"},
		"client rejected": {&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}, "api",
			true, "rejects the client certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail
			if server.TLS = tc.server; tc.server != nil {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			fields := "tls-server-name: '" + tc.name + "',"
			if tc.trust {
				file := filepath.Join(t.TempDir(), "ca.crt")
				if err := os.WriteFile(file, ca.Cert, 0o600); err != nil {
					t.Fatal(err)
				}
				fields += "certificate-authority: '" + file + "',"
			}
			file := filepath.Join(t.TempDir(), "config")
			text := kubeconfig("https://"+u.Host, fields, "token: t", "x")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			hints := problem.Hints(Explain("list nodes", get(t, ConnectOptions{Kubeconfig: file})))
			if (tc.want == "") != (len(hints) == 0) || !strings.Contains(strings.Join(hints, "\n"), tc.want) {
				t.Errorf("got %q, want %q", hints, tc.want)
			}
		})
	}
}
