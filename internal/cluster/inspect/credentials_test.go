package inspect

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// authority signs the certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: testNow.AddDate(-5, 0, 0), NotAfter: testNow.AddDate(20, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign returns a scheduler's certificate and key.
func (a *authority) sign(t *testing.T, from, to time.Time) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to,
		Subject: pkix.Name{CommonName: "system:kube-scheduler", Organization: []string{"system:kube-scheduler"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// kubeconfig has everything inline, as PMK and kubeadm write it.
func (a *authority) kubeconfig(t *testing.T, expires time.Time) string {
	t.Helper()
	cert, key := a.sign(t, testNow.AddDate(-1, 0, 0), expires)
	return kubeconfig("certificate-authority-data: "+base64.StdEncoding.EncodeToString(a.pem),
		"client-certificate-data: "+base64.StdEncoding.EncodeToString(cert), "client-key-data: "+
			base64.StdEncoding.EncodeToString(key))
}

func kubeconfig(cluster string, user ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "https://localhost:443", %s}}]
users: [{name: "system:kube-scheduler", user: {%s}}]
contexts: [{name: service-account-context, context: {cluster: local, user: "system:kube-scheduler"}}]
current-context: service-account-context
`, cluster, strings.Join(user, ", "))
}

func writeFile(t *testing.T, root, path, content string) {
	t.Helper()
	file := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const pmkKubeconfig = "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml"

func TestReadNodeCredentialsInline(t *testing.T) {
	root, ca := t.TempDir(), newAuthority(t)
	writeFile(t, root, pmkKubeconfig, ca.kubeconfig(t, time.Now().AddDate(1, 0, 0)))
	c, err := ReadNodeCredentials(root, pmkKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != pmkKubeconfig || c.Server != "https://localhost:443" || c.User != "system:kube-scheduler" ||
		c.Groups[0] != "system:kube-scheduler" || c.Subject != "CN=system:kube-scheduler,O=system:kube-scheduler" ||
		c.Expires.IsZero() {
		t.Errorf("got %+v", c)
	}
	if !bytes.Equal(c.CA, ca.pem) || !bytes.Contains(c.Key, []byte("PRIVATE KEY")) {
		t.Error("CA or key are not those of the file")
	}
}

// k3s, RKE2 and k0s refer to files; a container sees them below the node's root,
// and links among them may be absolute.
func TestReadNodeCredentialsByFile(t *testing.T) {
	root, ca := t.TempDir(), newAuthority(t)
	cert, key := ca.sign(t, time.Now().AddDate(0, 0, -1), time.Now().AddDate(1, 0, 0))
	const path = "/var/lib/rancher/k3s/server/cred/scheduler.kubeconfig"
	writeFile(t, root, path, kubeconfig("certificate-authority: /var/lib/rancher/k3s/server/tls/server-ca.crt",
		"client-certificate: ../tls/client-scheduler.crt", "client-key: /tls/client-scheduler.key"))
	writeFile(t, root, "/var/lib/rancher/k3s/server/tls/server-ca.crt", string(ca.pem))
	writeFile(t, root, "/var/lib/rancher/k3s/server/tls/client-scheduler.crt", string(cert))
	writeFile(t, root, "/srv/keys/client-scheduler.key", string(key))
	if err := os.Symlink("/../../srv/keys", filepath.Join(root, "tls")); err != nil {
		t.Fatal(err)
	}
	c, err := ReadNodeCredentials(root, path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.CA, ca.pem) || !bytes.Equal(c.Cert, cert) || !bytes.Equal(c.Key, key) {
		t.Error("the files' contents were not read in")
	}
}

func TestReadNodeCredentialsRejectsUnusable(t *testing.T) {
	ca := newAuthority(t)
	now := time.Now()
	b64 := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	old, oldKey := ca.sign(t, now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0))
	future, futureKey := ca.sign(t, now.AddDate(1, 0, 0), now.AddDate(2, 0, 0))
	good, goodKey := ca.sign(t, now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	authorityData := "certificate-authority-data: " + b64(ca.pem)
	user := func(cert, key []byte) []string {
		return []string{"client-certificate-data: " + b64(cert), "client-key-data: " + b64(key)}
	}
	for _, tc := range []struct{ name, content, want string }{
		{"expired", kubeconfig(authorityData, user(old, oldKey)...), "expired on "},
		{"expired without key and authority", kubeconfig("", "client-certificate-data: "+b64(old)), "expired on "},
		{"not valid yet", kubeconfig(authorityData, user(future, futureKey)...), "valid only from"},
		{"no key", kubeconfig(authorityData, "client-certificate-data: "+b64(good)), "no key"},
		{"another's key", kubeconfig(authorityData, user(good, oldKey)...), "the key does not match"},
		{"token", kubeconfig(authorityData, "token: abcdef"), "no client certificate"},
		{"invalid certificate", kubeconfig(authorityData, user([]byte("x"), goodKey)...), "is not PEM"},
		{"invalid authority", kubeconfig("certificate-authority-data: "+b64([]byte("x")), user(good, goodKey)...),
			"certificate authority is not PEM"},
		{"missing file", kubeconfig(authorityData, "client-certificate: /gone.crt"),
			"client certificate: read /gone.crt: no such file"},
		{"empty", "", "no current context"},
		{"no yaml", "\tnot yaml", "not a kubeconfig"},
		{"key that does not decode", kubeconfig(authorityData, "client-key-data: SECRETSECRET#"), "not a kubeconfig"},
		{"wrong context", strings.Replace(kubeconfig(authorityData), "current-context: service", "current-context: other", 1),
			`no context "other-account-context"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, root, pmkKubeconfig, tc.content)
			c, err := ReadNodeCredentials(root, pmkKubeconfig)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), pmkKubeconfig) {
				t.Fatalf("got %v, %v; want an error with %q and the path", c, err, tc.want)
			}
			if len(problem.Hints(err)) == 0 {
				t.Errorf("%v has no hint", err)
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), root) {
				t.Errorf("%v shows the key or the root directory", err)
			}
		})
	}
}

func TestReadNodeFileRejectsOtherFiles(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, root, "large", strings.Repeat("x", maxNodeFile+1))
	for path, want := range map[string]string{"/directory": "not a regular file", "/pipe": "not a regular file",
		"/loop": "too many symbolic links", "/large": "larger than", "/gone": "no such file"} {
		if _, err := readNodeFile(root, path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestNodeCredentialsNeverShowTheKey(t *testing.T) {
	c := NodeCredentials{Path: "/p", Raw: []byte("SECRET"), Key: []byte("SECRET"), Cert: []byte("c")}
	hex := fmt.Sprintf("%x", "SECRET")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, value := range []any{c, &c, struct{ C NodeCredentials }{c}, []NodeCredentials{c}} {
			if out := fmt.Sprintf(verb, value); strings.Contains(out, "SECRET") || strings.Contains(strings.ToLower(out), hex) ||
				strings.Contains(out, "83 69 67") {
				t.Errorf("%s of %T shows the key: %s", verb, value, out)
			}
		}
	}
	out, err := json.Marshal(map[string]any{"a": c, "b": &c})
	if err != nil || strings.Contains(string(out), "SECRET") ||
		strings.Contains(string(out), base64.StdEncoding.EncodeToString([]byte("SECRET"))) {
		t.Errorf("JSON shows the key: %s, %v", out, err)
	}
}

func TestDetectJudgesTheNodesCredentials(t *testing.T) {
	for _, tc := range []struct {
		name    string
		expires time.Time
		want    string
	}{
		{"expires soon", testNow.AddDate(0, 0, 7), "expires in 7 days, on 2026-11-28"},
		{"expired", testNow.AddDate(0, 0, -1), "expired on 2026-11-20"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, root, pmkKubeconfig, newAuthority(t).kubeconfig(t, tc.expires))
			info := detect(t, pmkMaster(), func(o *Options) { o.NodeRoot = root })
			wants(t, info, tc.want)
			if info.Credentials.Expires == nil || !info.Credentials.Expires.Equal(tc.expires) ||
				info.Credentials.User != "system:kube-scheduler" {
				t.Errorf("credentials: %+v", info.Credentials)
			}
		})
	}
}

func TestDetectNoticesANodeOfAnotherCluster(t *testing.T) {
	root, ca, other := t.TempDir(), newAuthority(t), newAuthority(t)
	writeFile(t, root, pmkKubeconfig, ca.kubeconfig(t, testNow.AddDate(1, 0, 0)))
	for _, tc := range []struct {
		trusted *authority
		warns   bool
	}{{ca, false}, {other, true}} {
		d := &detector{o: Options{NodeRoot: root}.withDefaults(), trusted: tc.trusted.pem}
		d.o.Now = func() time.Time { return testNow }
		d.info = emptyInfo(d.o)
		d.node(t.Context())
		if (len(d.info.Warnings) > 0) != tc.warns || d.info.Credentials.OtherCluster != tc.warns {
			t.Errorf("warnings: %q, of another cluster: %v, want both: %v", d.info.Warnings, d.info.Credentials.OtherCluster,
				tc.warns)
		}
	}
}

func TestDetectOffTheControlPlane(t *testing.T) {
	for _, root := range []string{"", t.TempDir()} {
		info := detect(t, pmkMaster(), func(o *Options) { o.NodeRoot = root })
		if info.Node.ControlPlane || info.Credentials.Kubeconfig != "" || info.Credentials.Expires != nil {
			t.Errorf("root %q: %+v, %+v", root, info.Node, info.Credentials)
		}
		wants(t, info)
	}
}

func FuzzKubeconfigNeverPanics(f *testing.F) {
	f.Add(kubeconfig("certificate-authority-data: eA==", "client-certificate-data: eA==", "client-key-data: eA=="))
	f.Add("contexts: [null]\nclusters: [{name: x}]\nusers: [{}]\ncurrent-context: x\n")
	f.Add("{\"kind\": \"Config\", \"contexts\": [{\"name\": \"\"}]}")
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		c := &NodeCredentials{Path: "/kubeconfig", Raw: []byte(content)}
		if err := c.parse(root); err == nil && c.User == "" && c.Subject == "" && len(c.Cert) == 0 {
			t.Errorf("%q reads as credentials without a certificate", content)
		}
	})
}
