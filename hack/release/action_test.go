package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// published writes a release whose pmk-sched prints "stage", signs its checksums with the step of
// the release workflow, and returns its directory and the public key.
func published(t *testing.T) (dist, publicKey string) {
	t.Helper()
	r := release{version: "v0.1.0", stage: stage(t, 0o755, time.Unix(1, 0)), dist: t.TempDir(), modified: time.Unix(1, 0)}
	write(t, filepath.Join(r.stage, "linux_amd64/pmk-sched"), "#!/bin/sh\necho stage\n")
	if _, err := r.archives(); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(r.dist); err != nil {
		t.Fatal(err)
	}
	return r.dist, signSums(t, r.dist)
}

// signSums runs the step of the workflow with a new key, and returns the public key.
func signSums(t *testing.T, dist string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, privateErr := x509.MarshalECPrivateKey(key)
	public, publicErr := x509.MarshalPKIXPublicKey(key.Public())
	if err := errors.Join(privateErr, publicErr); err != nil {
		t.Fatal(err)
	}
	var w struct{ Jobs map[string]job }
	if err := yaml.Unmarshal(workflows(t)["release.yml"], &w); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Jobs["publish"].Steps {
		if s.Env["RELEASE_KEY"] == "" {
			continue
		}
		dir := t.TempDir()
		if err := os.Symlink(dist, filepath.Join(dir, "dist")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", s.Run)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "RELEASE_KEY="+string(encode("EC PRIVATE KEY", private)))
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return string(encode("PUBLIC KEY", public))
	}
	t.Fatal("no step of the workflow signs")
	return ""
}

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// action runs the script of action.yml against a server of releases, and returns what it printed
// and whether pmk-sched is in PATH after it.
type action struct {
	url, version, publicKey, ca string
	// gh is the script that stands for the GitHub CLI: its attestations are in the network.
	gh string
}

func (a action) run(t *testing.T) (output string, installed bool) {
	t.Helper()
	var definition struct {
		Runs struct{ Steps []step }
	}
	if err := yaml.Unmarshal(workflows(t)["action.yml"], &definition); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "gh"), "#!/bin/sh\n"+a.gh)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", definition.Runs.Steps[0].Run)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CURL_CA_BUNDLE="+a.ca, "URL="+a.url,
		"VERSION="+a.version, "PUBLIC_KEY="+a.publicKey, "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP="+dir,
		"GITHUB_PATH="+filepath.Join(dir, "path"), "GITHUB_OUTPUT="+filepath.Join(dir, "output"))
	text, err := cmd.CombinedOutput()
	path, missing := os.ReadFile(filepath.Join(dir, "path"))
	if (err == nil) != (missing == nil) {
		t.Errorf("exit status %v, PATH %q\n%s", err, path, text)
	}
	return string(text), missing == nil
}

func TestActionInstallsOnlyWhatTheReleaseWorkflowMade(t *testing.T) {
	dist, key := published(t)
	server := httptest.NewTLSServer(http.StripPrefix("/v0.1.0/", http.FileServer(http.Dir(dist))))
	defer server.Close()
	plain := httptest.NewServer(server.Config.Handler)
	defer plain.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(encode("CERTIFICATE", server.Certificate().Raw)))

	// A mirror with another program, and checksums that fit.
	changed := t.TempDir()
	if err := os.CopyFS(changed, os.DirFS(dist)); err != nil {
		t.Fatal(err)
	}
	changedServer := httptest.NewTLSServer(http.StripPrefix("/v0.1.0/", http.FileServer(http.Dir(changed))))
	defer changedServer.Close()
	archive := filepath.Join(changed, "pmk-sched_v0.1.0_linux_amd64.tar.gz")
	write(t, archive, "another program")
	if err := os.Remove(filepath.Join(changed, sumsFile)); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(changed); err != nil {
		t.Fatal(err)
	}

	_, otherKey := published(t)
	const attested = `echo "gh $*"`
	for name, test := range map[string]struct {
		action
		installed bool
		want      string
	}{
		"signed":            {action{server.URL, "v0.1.0", key, ca, "exit 9"}, true, "Verified OK"},
		"attested":          {action{server.URL, "v0.1.0", "", ca, attested}, true, "--source-ref refs/tags/v0.1.0"},
		"not attested":      {action{server.URL, "v0.1.0", "", ca, "echo no attestation; exit 1"}, false, "no attestation"},
		"changed":           {action{changedServer.URL, "v0.1.0", key, ca, attested}, false, "Verification"},
		"another key":       {action{server.URL, "v0.1.0", otherKey, ca, attested}, false, "Verification"},
		"another version":   {action{server.URL, "latest", key, ca, attested}, false, "invalid version"},
		"plain HTTP":        {action{plain.URL, "v0.1.0", key, ca, attested}, false, "must start with https://"},
		"unknown authority": {action{server.URL, "v0.1.0", key, "/dev/null", attested}, false, "curl"},
	} {
		t.Run(name, func(t *testing.T) {
			output, installed := test.run(t)
			if installed != test.installed || !strings.Contains(output, test.want) {
				t.Errorf("installed: %t, want %t and %q in the output:\n%s", installed, test.installed, test.want, output)
			}
		})
	}
}
