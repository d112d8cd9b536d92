package pack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// testKey returns a key, and the file of its public key.
func testKey(t *testing.T) (*sign.PrivateKey, string) {
	t.Helper()
	generated, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(generated)
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pub.pem")
	if err := os.WriteFile(file, []byte(key.Public().PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	return key, file
}

// toyBuild is a build whose program is a small Go program with a module.
func toyBuild(t *testing.T) *build.Result {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/toy\ngo 1.21\nrequire example.com/dep v1.0.0\n" +
			"replace example.com/dep => ./dep\n",
		"main.go":     "package main\n\nimport \"example.com/dep\"\n\nfunc main() { println(dep.Name) }\n",
		"dep/go.mod":  "module example.com/dep\n",
		"dep/main.go": "package dep\n\nconst Name = \"dep\"\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, build.KubeScheduler)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	_, sum, err := build.HashFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return &build.Result{
		Info: build.Info{Release: "v1.24.3", Go: "1.18.10", Source: sourceModules},
		Binaries: []build.Binary{{Program: build.KubeScheduler, Platform: build.Host(), Path: program, SHA256: sum,
			Inputs: "x"}},
	}
}

// toyImage packs the toy, and returns what describes it.
func toyImage(t *testing.T, built *build.Result) (*image.Built, *imageDocuments) {
	t.Helper()
	r := Request{SignKey: "key", Base: image.Base{Empty: true}, Version: "v0.1.0"}
	made, err := image.Build(t.Context(), r.product().imageOptions(r, built))
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLock(r.Version, built)
	if err != nil {
		t.Fatal(err)
	}
	l.Base = made.BaseDigest
	d, err := newDocuments(r, built, l, l.Base)
	if err != nil {
		t.Fatal(err)
	}
	return made, d
}

// newRegistry starts a registry, and returns its host.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func pushed(t *testing.T, made *image.Built) string {
	t.Helper()
	return pushedTo(t, newRegistry(t), made)
}

func pushedTo(t *testing.T, host string, made *image.Built) string {
	t.Helper()
	ref := host + "/team/kube-scheduler:v1"
	if _, err := image.Push(t.Context(), made, ref, nil); err != nil {
		t.Fatal(err)
	}
	return ref
}

// verified returns the outcome of each check of an image.
func verified(t *testing.T, ref, key string) map[string]string {
	t.Helper()
	s := &session.Session{
		CacheDir: t.TempDir(), Log: zap.NewNop(), OnStep: func(string) func(error) { return func(error) {} },
	}
	report, err := VerifyImage(t.Context(), s, ImageRequest{Image: ref, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for _, c := range report.Checks {
		outcomes[c.Name] = strings.TrimSpace(c.Outcome + " " + strings.Join(c.Details, "; "))
	}
	return outcomes
}

func TestSignedImages(t *testing.T) {
	built := toyBuild(t)
	for name, test := range map[string]func(*testing.T, *build.Result){
		"a signed image is verified":                  signedImage,
		"a signed document is not a signature":        signedDocument,
		"a signature of another image is refused":     signatureOfAnotherImage,
		"documents that do not fit the program fail":  otherDocuments,
		"an image is signed for a name and a release": signedForNameAndRelease,
	} {
		t.Run(name, func(t *testing.T) { test(t, built) })
	}
}

func signedImage(t *testing.T, built *build.Result) {
	key, public := testKey(t)
	made, d := toyImage(t, built)
	if err := d.attach(t.Context(), key, made); err != nil {
		t.Fatal(err)
	}
	ref := pushed(t, made)
	want := map[string]string{
		"digest": CheckPassed, "signature": CheckPassed, "sbom": CheckPassed, "provenance": CheckPassed,
	}
	if diff := cmp.Diff(want, verified(t, ref, public)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	release := versions.Release{}
	name, err := VerifySignature(t.Context(), SignatureRequest{Reference: ref, Key: key.Public().PEM(),
		Release: func(signed versions.Release) error {
			release = signed
			return nil
		}})
	if err != nil || !strings.HasSuffix(name, "@"+made.Digest) || release.String() != "v1.24.3" {
		t.Errorf("got %s, %v, signed for %s", name, err, release)
	}
	other, _ := testKey(t)
	_, err = VerifySignature(t.Context(), SignatureRequest{Reference: ref, Key: other.Public().PEM()})
	var unsigned *UnsignedError
	if !errors.As(err, &unsigned) || !strings.Contains(err.Error(), "names the key "+key.Public().Hint()) {
		t.Errorf("another key: got %v", err)
	}
}

// `cosign verify` accepts any statement of the key about the image.
func signedDocument(t *testing.T, built *build.Result) {
	key, public := testKey(t)
	for _, kind := range []string{sign.SBOM, sign.Provenance, "https://example.com/x"} {
		made, d := toyImage(t, built)
		predicate := d.provenance
		if kind == sign.SBOM {
			predicate = d.sboms[build.Host().String()]
		}
		if err := attest(t.Context(), key, made, made.Digest, kind, predicate); err != nil {
			t.Fatal(err)
		}
		ref := pushed(t, made)
		got := verified(t, ref, public)["signature"]
		if !strings.HasPrefix(got, CheckFailed) || !strings.Contains(got, `has the type "`+kind+`"`) {
			t.Errorf("%s: the signature is %s", kind, got)
		}
		if _, err := VerifySignature(t.Context(), SignatureRequest{Reference: ref, Key: key.Public().PEM()}); err == nil {
			t.Errorf("%s is accepted as a signature", kind)
		}
	}
}

// A bundle of the key about another image, which anyone can copy.
func signatureOfAnotherImage(t *testing.T, built *build.Result) {
	key, public := testKey(t)
	made, _ := toyImage(t, built)
	bundle, err := sign.Sign(t.Context(), key, sign.NewStatement(sign.Signature, strings.Repeat("0", 64), nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Attach(made.Digest, sign.BundleType, bundle, nil); err != nil {
		t.Fatal(err)
	}
	got := verified(t, pushed(t, made), public)["signature"]
	if !strings.HasPrefix(got, CheckFailed) || !strings.Contains(got, "its statement is about another image") {
		t.Errorf("the signature is %s", got)
	}
}

// Whoever may write to the registry can put an older signed image back under the tag, or the signed
// image of another scheduler. A signature without name and release says nothing about them.
func signedForNameAndRelease(t *testing.T, built *build.Result) {
	key, _ := testKey(t)
	want := configcheck.ReleaseCheck{Image: "i", Want: versions.Release{Major: 1, Minor: 24, Patch: 3},
		Exact: true, Branch: true}
	for name, c := range map[string]struct {
		claims        sign.Claims
		refused, hint string
	}{
		"nothing":    {},
		"this image": {claims: sign.Claims{Name: "HOST/team/kube-scheduler", Release: "v1.24.3"}},
		"another name": {sign.Claims{Name: "HOST/other/kube-scheduler"}, "the signature is for images with the name 127.0.0.1",
			"--sign-name"},
		"older release": {sign.Claims{Release: "v1.23.9"},
			"image i has the kube-scheduler of v1.23.9, and the scheduler is for v1.24.3", "--branch v1.23.9"},
		"older patch":   {sign.Claims{Release: "v1.24.1"}, "has the kube-scheduler of v1.24.1", "--branch v1.24.1"},
		"not a release": {sign.Claims{Release: "latest"}, "read the release in the signature", "use the tag"},
	} {
		made, d := toyImage(t, built)
		host := newRegistry(t)
		d.claims = sign.Claims{Name: strings.Replace(c.claims.Name, "HOST", host, 1), Release: c.claims.Release}
		if err := d.attach(t.Context(), key, made); err != nil {
			t.Fatal(err)
		}
		ref := pushedTo(t, host, made)
		pinned, err := VerifySignature(t.Context(),
			SignatureRequest{Reference: ref, Key: key.Public().PEM(), Release: want.Check})
		if c.refused == "" {
			if err != nil || pinned != ref+"@"+made.Digest {
				t.Errorf("%s: got %s, %v", name, pinned, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.refused) ||
			!strings.Contains(strings.Join(problem.Hints(err), " "), c.hint) {
			t.Errorf("%s: got %v, hints %q", name, err, problem.Hints(err))
		}
	}
}

// The documents of the key say what another build had in it.
func otherDocuments(t *testing.T, built *build.Result) {
	key, public := testKey(t)
	made, d := toyImage(t, built)
	platform := build.Host().String()
	d.sboms[platform] = []byte(strings.ReplaceAll(string(d.sboms[platform]), `"name": "stdlib"`, `"name": "other"`))
	d.provenance = []byte(strings.Replace(string(d.provenance), `"go":"1.18.10"`, `"go":"1.18.11"`, 1))
	if err := d.attach(t.Context(), key, made); err != nil {
		t.Fatal(err)
	}
	got := verified(t, pushed(t, made), public)
	if got["sbom"] == CheckPassed || got["signature"] != CheckPassed ||
		got["provenance"] != CheckFailed+" internalParameters of the provenance differ from the lock" {
		t.Errorf("the outcomes are %v", got)
	}
}

func FuzzLock(f *testing.F) {
	text, err := someLock().marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("apiVersion: pmk-sched.io/v1alpha1\nkind: Lock\nmodules: ['']\nplugins: [{origin: /etc}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseLock("pmk-sched.lock", text)
		if err != nil {
			return
		}
		if _, err := l.inputs(); err != nil {
			t.Error(err)
		}
		l.compareImage(nil, nil)
		if r, err := l.request(ImageRequest{}); err == nil {
			for _, p := range r.Plugins {
				if p.Dir != "" {
					t.Errorf("a lock names the directory %s", p.Dir)
				}
			}
		}
	})
}
