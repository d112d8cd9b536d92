//go:build linux && (cases || faults)

package hostile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// machine is the user's machine: his files, a registry that he may push to, and another cluster.
type machine struct {
	home, tmp string
	canaries  canaries
	// key is the path of a private key, plugin the directory of a Go module, base the path of an
	// image archive, configuration the path of a scheduler's configuration.
	key, plugin, base, configuration string
	// executed is a file that exists only if something of the cluster was executed.
	executed string
	// registry and elsewhere are the addresses of the registry and of the other cluster.
	registry, elsewhere string

	mu       sync.Mutex
	contacts []string
	before   map[string]string
}

// canary returns a text that is nowhere else. It consists of characters of base64 and has a length
// that base64 of whole bytes has, so that a PEM block may have it as its content.
func canary() string { return "Canary" + strings.Repeat("x", 4) + rand.Text() }

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{home: t.TempDir(), tmp: t.TempDir(), canaries: canaries{}}
	m.executed = filepath.Join(t.TempDir(), "executed")
	m.registry = m.listen(t, "registry", registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	m.elsewhere = m.listen(t, "other cluster", http.NotFoundHandler())

	key, login, token, source := canary(), canary(), canary(), canary()
	m.key = m.write(t, ".ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n"+key+
		"\n-----END OPENSSH PRIVATE KEY-----\n")
	m.canaries["the private key"] = key
	auth := base64.StdEncoding.EncodeToString([]byte("me:" + login))
	m.write(t, ".docker/config.json", `{"auths": {"`+m.registry+`": {"auth": "`+auth+`"}}}`)
	m.canaries["the registry's password"], m.canaries["the registry's login"] = login, auth
	m.write(t, ".kube/other", fmt.Sprintf(kubeconfig, "http://"+m.elsewhere, "", token))
	m.canaries["the token of the other cluster"] = token
	m.plugin = filepath.Dir(m.write(t, "src/plugin/go.mod", "module example.com/plugin\n\ngo 1.26\n"))
	m.write(t, "src/plugin/plugin.go", "package plugin\n\n// "+source+"\n")
	m.canaries["the sources of a plugin"] = source
	inImage, setting := canary(), canary()
	m.base = m.write(t, "images/base.tar", string(tarOf(t, "etc/secret", []byte(inImage))))
	m.canaries["the content of an image"] = inImage
	m.configuration = m.write(t, "scheduler.yaml", "# "+setting+"\n")
	m.canaries["the configuration of a scheduler"] = setting
	environment := canary()
	m.canaries["the environment"] = environment
	m.before = m.files(t)
	return m
}

// kubeconfig has the address and the certificate of a cluster and the token of a user.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s", certificate-authority-data: "%s"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: "%s"}}]
`

// listen starts a server whose requests are contacts of the machine. It returns its address.
func (m *machine) listen(t *testing.T, name string, handler http.Handler) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.contacts = append(m.contacts, name+": "+r.Method+" "+r.URL.Path)
		m.mu.Unlock()
		if name == "registry" && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func (m *machine) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(m.home, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// files returns the digests of the user's files by path, except the files of caches.
func (m *machine) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(m.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, m.home+"/")] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// environ is the whole environment of a command. The caches are of the user who runs the tests: a
// command that compiles would download Kubernetes otherwise.
func (m *machine) environ(t *testing.T) []string {
	t.Helper()
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + m.home, "TMPDIR=" + m.tmp, "PATH=" + os.Getenv("PATH"), "PMK_SCHED_CACHE=" + cache,
		"PMK_SCHED_PROGRAMS=build", "AWS_SECRET_ACCESS_KEY=" + m.canaries["the environment"],
	}
	return append(env, goCaches(t)...)
}

// take returns the requests that the registry and the other cluster got since the last call.
func (m *machine) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	contacts := m.contacts
	m.contacts = nil
	return contacts
}
