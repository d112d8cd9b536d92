package lifecycle

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

const kubeadmKubeconfig = "/etc/kubernetes/scheduler.conf"

func authority(t *testing.T, name string) *certificates.Authority {
	t.Helper()
	made, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// node writes the files of a control-plane node of the cluster of an authority, and returns their
// root.
func node(t *testing.T, of *certificates.Authority) string {
	t.Helper()
	pair, err := of.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "system:kube-scheduler"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://localhost:443', certificate-authority-data: %s}}]
users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]
`, encode(of.Cert), encode(pair.Cert), encode(pair.Key))
	root := t.TempDir()
	for _, path := range []string{kubeadmKubeconfig, "/root/.kube/config"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A record of another cluster can have any credentials. Only the user gives the key of this node
// to another cluster than its own.
func TestARecordDoesNotGetTheKeyOfAnotherClustersNode(t *testing.T) {
	root := node(t, authority(t, "this"))
	own := filepath.Join(t.TempDir(), "pmk-sched.yaml")
	if err := os.WriteFile(own, []byte("apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: n}\n"+
		"spec: {credentials: node, image: {reference: 'i:v1'}, source: {branch: v1.24.3}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.Image.Reference = "i:v1"
	asking := recorded.DeepCopy()
	asking.Spec.Credentials = deploy.CredentialsNode
	unchosen := deploy.Installed{Request: recorded}
	chosen := deploy.Installed{Request: recorded, Credentials: "node"}
	for name, c := range map[string]struct {
		flags  spec.Flags
		before deploy.Installed
		other  bool
		read   bool
	}{
		"a record that asks":            {spec.Flags{}, deploy.Installed{Request: asking}, true, false},
		"a record of chosen ones":       {spec.Flags{}, chosen, true, false},
		"the same of this cluster":      {spec.Flags{}, deploy.Installed{Request: asking}, false, true},
		"chosen ones of this cluster":   {spec.Flags{}, chosen, false, true},
		"the file of the user":          {spec.Flags{File: own}, unchosen, true, true},
		"a flag of the user":            {spec.Flags{Credentials: "hostpath"}, unchosen, true, true},
		"nobody asks":                   {spec.Flags{}, unchosen, true, false},
		"a flag that leaves it to auto": {spec.Flags{Credentials: "auto"}, deploy.Installed{Request: asking}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags.Name = "n"
			sp, err := spec.Read(c.flags)
			if err == nil {
				sp, err = sp.Again(c.before, "v1.24.3", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := newRequest(t.Context(), &session.Session{}, sp)
			if err != nil {
				t.Fatal(err)
			}
			r.Cluster = &inspect.Info{Node: inspect.Node{Root: root}}
			r.Cluster.Credentials.Kubeconfig, r.Cluster.Credentials.OtherCluster = kubeadmKubeconfig, c.other
			r.deps.Config = &rest.Config{Host: "https://127.0.0.1:1"}
			if err := r.readCredentials(t.Context()); err != nil {
				t.Fatal(err)
			}
			if read := r.Node != nil; read != c.read {
				t.Errorf("the key is read: %t", read)
			}
		})
	}
}

func TestARefreshGivesTheKeyOfANodeToItsOwnClusterOnly(t *testing.T) {
	this, other := authority(t, "this"), authority(t, "other")
	r := &refresher{root: node(t, this), report: &deploy.CredentialsReport{Mode: deploy.CredentialsNode}}
	for name, c := range map[string]struct {
		trusted *certificates.Authority
		want    string
	}{"its own": {this, ""}, "another": {other, "must not get its key"}} {
		r.deps.Config = &rest.Config{Host: "https://127.0.0.1:1",
			TLSClientConfig: rest.TLSClientConfig{CAData: c.trusted.Cert}}
		_, err := r.newCertificate(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The path is that of a volume of a Deployment, or of one in a revision.
func TestNoOtherFileOfANodeIsReadForACluster(t *testing.T) {
	read, err := deploy.NodeFileReader(&session.Session{NodeRoot: node(t, authority(t, "this"))})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := read(kubeadmKubeconfig); err != nil || found.User == "" {
		t.Errorf("the scheduler's kubeconfig: %v", err)
	}
	for _, path := range []string{"/root/.kube/config", "/etc/kubernetes/../../root/.kube/config", ""} {
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), "not read") {
			t.Errorf("%q: got %v", path, err)
		}
	}
}
