package loadaware

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const goodResponse = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"a:9100"},"value":[1700000000.1,"0.25"]}]}}`

func clientFor(t *testing.T, prometheus string) *client {
	t.Helper()
	s, err := decode(scheduler.NewArguments([]byte(`{"prometheus": {` + prometheus + `}}`)))
	if err != nil {
		t.Fatal(err)
	}
	return newClient(s)
}

func TestInvalidResponsesAreErrors(t *testing.T) {
	for _, test := range []struct {
		name    string
		respond http.HandlerFunc
		want    string
	}{
		{"HTML", text(200, "<html>Welcome</html>"), "not from Prometheus"},
		{"empty", text(200, ""), "not from Prometheus"},
		{"truncated", text(200, goodResponse[:60]), "not from Prometheus"},
		{"two documents", text(200, goodResponse+goodResponse), "not from Prometheus"},
		{"other JSON", text(200, `{"kind": "Status"}`), `status ""`},
		{"a scalar", text(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`),
			`"scalar", expected an instant vector`},
		{"no result", text(200, `{"status":"success","data":{"resultType":"vector"}}`), "decode samples"},
		{"invalid point", text(200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}}`), "a point has 1 parts"},
		{"invalid query", text(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
			`the query failed (400, bad_data): "parse error"`},
		{"forbidden", text(403, "go away"), `status 403: "go away"`},
		{"a long error", text(500, strings.Repeat("x", 5000)), strings.Repeat("x", 200) + `…"`},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
		}, `redirect (302) to "https://elsewhere.example.com/"`},
		{"the first redirect", text(300, goodResponse), "redirect (300)"},
		{"the last redirect", text(399, goodResponse), "redirect (399)"},
		{"the last success", text(299, goodResponse), "has status 299"},
		{"the first error", text(400, goodResponse), "has status 400"},
		{"too large", text(200, goodResponse+strings.Repeat(" ", 1<<20)), "larger than prometheus.maxBytes"},
		{"too large when decompressed", packed, "larger than prometheus.maxBytes"},
		{"aborted connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"endless body", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, goodResponse[:60])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "deadline exceeded"},
		{"no response", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.respond)
			t.Cleanup(server.Close)
			timeout := "1m"
			if strings.Contains(test.want, "deadline") {
				timeout = "300ms"
			}
			c := clientFor(t, fmt.Sprintf(`"url": %q, "maxBytes": 65536, "timeout": %q`, server.URL, timeout))
			samples, err := c.query(t.Context(), "up")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v, want %q", samples, err, test.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func packed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(w)
	_, _ = io.WriteString(zip, strings.Repeat(" ", 10<<20))
	_ = zip.Close()
}

func TestQueryKeepsThePathOfTheURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/monitoring/api/v1/query" || r.URL.Query().Get("query") != `a{b="c"} + 1` ||
			r.Header.Get("Authorization") != "" {
			t.Errorf("got request %s %v", r.URL, r.Header)
		}
		_, _ = io.WriteString(w, goodResponse)
	}))
	defer server.Close()
	samples, err := clientFor(t, fmt.Sprintf(`"url": "%s/monitoring/"`, server.URL)).query(t.Context(), `a{b="c"} + 1`)
	if err != nil || len(samples) != 1 || samples[0].Value.value != 0.25 {
		t.Errorf("%v, %v", samples, err)
	}
}

// newCertificate returns a certificate signed by parent, or a self-signed one if parent is nil.
type certificate struct {
	x509 *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newCertificate(t *testing.T, parent *certificate, name string) *certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	issuer, signer := template, key
	if parent != nil {
		issuer, signer = parent.x509, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate{x509: parsed, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (c *certificate) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChangedFilesAreReadAgain(t *testing.T) {
	ca, otherCA := newCertificate(t, nil, "ca"), newCertificate(t, nil, "other")
	serving, own, stranger := newCertificate(t, ca, "prometheus.example.com"), newCertificate(t, ca,
		"scheduler"), newCertificate(t, otherCA, "stranger")
	clients := x509.NewCertPool()
	clients.AddCert(ca.x509)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer second" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, goodResponse)
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{serving.x509.Raw}, PrivateKey: serving.key}},
		ClientCAs:    clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the test expects failed handshakes
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("ca"), otherCA.pem)
	write(t, file("cert"), stranger.pem)
	write(t, file("key"), stranger.keyPEM(t))
	write(t, file("token"), []byte("first\n"))
	c := clientFor(t,
		fmt.Sprintf(
			`"url": %q, "caFile": %q, "certFile": %q, "keyFile": %q, "bearerTokenFile": %q, "serverName": "prometheus.example.com"`,
			server.URL, file("ca"), file("cert"), file("key"), file("token")))
	fails := func(want string) {
		t.Helper()
		if _, err := c.query(t.Context(), "up"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		} else if strings.Contains(err.Error(), "first") {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	fails("unknown authority")
	write(t, file("ca"), ca.pem)
	fails("tls:") // the server does not trust the certificate
	write(t, file("cert"), own.pem)
	fails("prometheus.certFile and prometheus.keyFile")
	write(t, file("key"), own.keyPEM(t))
	fails("status 401")
	write(t, file("token"), []byte("two words"))
	fails("must contain one token")
	write(t, file("token"), []byte("second\n"))
	if _, err := c.query(t.Context(), "up"); err != nil {
		t.Error(err)
	}
	write(t, file("ca"), []byte("nothing"))
	fails("no PEM certificate found")
	if err := os.Remove(file("ca")); err != nil {
		t.Fatal(err)
	}
	fails("read prometheus.caFile")
}

func FuzzInterpret(f *testing.F) {
	f.Add([]byte(goodResponse), 200)
	f.Add([]byte(`{"status":"error"}`), 422)
	f.Fuzz(func(_ *testing.T, body []byte, status int) {
		samples, err := interpret(&http.Response{StatusCode: status, Header: http.Header{}}, body)
		if err == nil {
			read(samples, Metric{NodeLabel: "instance", Full: 1}, time.Unix(0, 0))
		}
	})
}
