//go:build linux && releases

// Package sign tests signed images with the real cosign: a scheduler of a real release, pushed to a
// registry.
package sign

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	branch = "v1.24.3"
	plugin = "builtin:timestamp"
)

// cosign runs cosign, which `make bin/cosign` compiles, without a configuration of the user.
func cosign(t *testing.T, dir string, args ...string) run.Result {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), run.Binary(t, "cosign"), args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "COSIGN_PASSWORD=")
	return run.Command(t, cmd)
}

func verifyWithCosign(t *testing.T, dir, key, image string) run.Result {
	t.Helper()
	return cosign(t, dir, "verify", "--key", filepath.Join(dir, key), "--insecure-ignore-tlog=true", image)
}

// digest returns the image of a reference by digest.
func digest(t *testing.T, reference string) string {
	t.Helper()
	tag, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	return tag.Context().Digest(found.Digest.String()).String()
}

func TestSignedImage(t *testing.T) {
	t.Run("in a registry with the referrers API", func(t *testing.T) {
		server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
			registry.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(server.Close)
		signed(t, strings.TrimPrefix(server.URL, "http://"))
	})
	t.Run("in CNCF Distribution without it", func(t *testing.T) { signed(t, startDistribution(t)) })
}

// startDistribution starts Debian's docker-registry, and returns its address.
func startDistribution(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0") // cosign uses HTTP with this address only
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	config := run.WriteFile(t, "config.yml", "version: 0.1\nhttp: {addr: '"+address+"'}\n"+
		"storage: {filesystem: {rootdirectory: '"+t.TempDir()+"'}}\n")
	controlplane.NewProcess(t, "docker-registry", "serve", config).Start()
	run.Eventually(t, "the registry answers", func(ctx context.Context) (bool, string) {
		_, err := controlplane.Get(ctx, "http://"+address+"/v2/", "")
		return err == nil, fmt.Sprint(err)
	})
	return address
}

// signed tests images in a registry.
func signed(t *testing.T, address string) {
	dir := t.TempDir()
	run.KeyPair(t, dir, "mine")
	run.KeyPair(t, dir, "other")
	file := func(name string) string { return filepath.Join(dir, name) }
	repository := address + "/team/kube-scheduler"
	reference := repository + ":v1"
	run.PMKSched(t, "build", "--branch", branch, "--with", plugin, "--busybox", "/bin/busybox", "--tag", reference, "--push",
		"--sign-key", file("mine.pem"), "--sbom", file("sbom.json")).OK(t)
	image := digest(t, reference)

	t.Run("cosign accepts it", func(t *testing.T) {
		verifyWithCosign(t, dir, "mine.pub", image).OK(t)
		verifyWithCosign(t, dir, "other.pub", image).Fails(t, 1, "could not verify envelope")
	})
	t.Run("verify-image accepts it", func(t *testing.T) {
		verified := run.PMKSched(t, "verify-image", "--key", file("mine.pub"), image).OK(t)
		verified.Prints(t, "signature", "sbom", "provenance")
		if strings.Contains(verified.Stdout, "absent") {
			t.Errorf("a document is absent:\n%s", verified)
		}
		run.PMKSched(t, "verify-image", "--key", file("other.pub"), image).Fails(t, 3, "of 4 checks of")
	})
	t.Run("a changed image is refused", func(t *testing.T) {
		changed := change(t, image, "changed")
		verifyWithCosign(t, dir, "mine.pub", changed).Fails(t, 10)
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), changed).Fails(t, 3, "of 4 checks of")
	})
	t.Run("a signed SBOM is not a signature", func(t *testing.T) {
		changed := change(t, image, "attested")
		cosign(t, dir, "attest", "--key", importKey(t, dir), "--type", "cyclonedx", "--predicate", file("sbom.json"),
			"--use-signing-config=false", "--tlog-upload=false", "--yes", changed).OK(t)
		verifyWithCosign(t, dir, "mine.pub", changed).OK(t) // docs/signing.md warns of it
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), changed).Fails(t, 3, "of 4 checks of")
	})
	t.Run("the signature of cosign is accepted", func(t *testing.T) {
		changed := change(t, image, "cosigned")
		cosign(t, dir, "sign", "--key", importKey(t, dir), "--use-signing-config=false", "--tlog-upload=false", "--yes",
			changed).OK(t)
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), changed).OK(t)
	})
	t.Run("a release index is signed", func(t *testing.T) {
		run.PMKSched(t, "build", "--branches", branch, "--busybox", "/bin/busybox", "--tag", repository+":{release}", "--push",
			"--index", file("releases.yaml"), "--sign-key", file("mine.pem")).OK(t)
		index := digest(t, repository+":releases")
		verifyWithCosign(t, dir, "mine.pub", index).OK(t)
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), index).OK(t).Prints(t, "signature")
		run.PMKSched(t, "verify-image", "--key", file("other.pub"), index).Fails(t, 3, "1 of 2 checks of")
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), "--rebuild", index).Fails(t, 2, "has no program")
	})
	t.Run("it is built again", func(t *testing.T) {
		run.PMKSched(t, "verify-image", "--key", file("mine.pub"), "--rebuild", "--busybox", "/bin/busybox",
			image).OK(t).Prints(t, "rebuild")
	})
}

// change pushes the image with another annotation, and returns it by digest.
func change(t *testing.T, image, tag string) string {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	to := ref.Context().Tag(tag)
	changed, ok := mutate.Annotations(img, map[string]string{"changed": tag}).(v1.Image)
	if !ok {
		t.Fatal("the annotated image is not an image")
	}
	if err := remote.Write(to, changed); err != nil {
		t.Fatal(err)
	}
	return digest(t, to.String())
}

// importKey returns the file of the private key in cosign's own format.
func importKey(t *testing.T, dir string) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "imported")
	cosign(t, dir, "import-key-pair", "--key", filepath.Join(dir, "mine.pem"), "--output-key-prefix", prefix).OK(t)
	return prefix + ".key"
}
