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
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sign"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

func TestReleaseIndexIsReadFromARegistryWithItsSignature(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)),
		registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	generated, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(generated)
	if err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(t.TempDir(), "pub.pem")
	text, private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(private, text, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := sign.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public, []byte(key.Public().PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	other, _ := testKey(t)
	s := &session.Session{OnStep: func(string) func(error) { return func(error) {} }}
	index := &v1alpha1.SchedulerReleases{Releases: []v1alpha1.SchedulerRelease{{Minor: "1.24", Release: "v1.24.3",
		Image: "localhost/s:v1", Configuration: "kind: KubeSchedulerConfiguration\n"}}}
	repository := strings.TrimPrefix(server.URL, "http://") + "/sched"
	for _, signKey := range []string{"", private} {
		reference, err := PushReleases(t.Context(), s, index, repository, signKey)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadReleases(t.Context(), reference, "")
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := v1alpha1.DecodeReleases(got)
		if err != nil || decoded.Releases[0].Image != "localhost/s:v1" {
			t.Errorf("got %v, %v", decoded, err)
		}
		if _, err := ReadReleases(t.Context(), reference, key.Public().PEM()); (err == nil) != (signKey != "") ||
			err != nil && !errors.As(err, new(*UnsignedError)) {
			t.Errorf("with signing key %q: %v", signKey, err)
		}
		if _, err := ReadReleases(t.Context(), reference, other.Public().PEM()); !errors.As(err, new(*UnsignedError)) {
			t.Errorf("with another key: %v", err)
		}
		report, err := VerifyImage(t.Context(), s, ImageRequest{Image: reference, Key: public})
		if err != nil || len(report.Checks) != 2 || (report.Failed() == 0) != (signKey != "") {
			t.Errorf("with signing key %q: %+v, %v", signKey, report, err)
		}
	}
}
