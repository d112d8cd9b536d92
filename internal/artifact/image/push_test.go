package image

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// keychain has one user for all registries.
type keychain struct{ user, password string }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: k.user, Password: k.password}, nil
}

// answering starts a registry that wants the user "me" with the password
// "secret", and answers all but the greeting with status unless that is 0.
func answering(t *testing.T, status int) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "me" || password != "secret":
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		case status != 0 && r.URL.Path != "/v2/":
			w.WriteHeader(status)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// refusing is a loopback address at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestPushedImageIsFoundByDigestAndTag(t *testing.T) {
	one, two := build(t, busyboxOptions(t)), build(t, bothPlatforms(t, Base{Reference: pushBase(t, bothBasePlatforms...)}))
	host := newRegistry(t)
	for tag, b := range map[string]*Built{"one": one, "two": two} {
		ref := host + "/team/scheduler:" + tag
		for range 2 {
			digest, err := Push(t.Context(), b, ref, authn.DefaultKeychain)
			if err != nil || digest != b.Digest {
				t.Fatalf("%s: digest %q, want %q, error %v", tag, digest, b.Digest, err)
			}
		}
		r, err := name.ParseReference(ref)
		if err != nil {
			t.Fatal(err)
		}
		found, err := remote.Get(r)
		if err != nil || found.Digest.String() != b.Digest {
			t.Fatalf("%s: found %v, error %v", tag, found, err)
		}
		if b.Index == nil {
			img, err := found.Image()
			if err := errors.Join(err, validate.Image(img)); err != nil {
				t.Error(err)
			}
			continue
		}
		index, err := found.ImageIndex()
		if err := errors.Join(err, validate.Index(index)); err != nil {
			t.Error(err)
		}
	}
}

func TestRegistryErrorsHaveACauseAndAHint(t *testing.T) {
	closed, locked := refusing(t), answering(t, 0)
	me := keychain{"me", "secret"}
	for _, c := range []struct {
		name     string
		host     string
		keychain authn.Keychain
		want     []string
	}{
		{"refused", closed, nil, []string{
			"connection to " + closed + " refused", "hint: check that the registry is running"}},
		{"no credentials", locked, nil, []string{
			"refused the credentials or requires some", "hint: log in with `docker login " + locked + "`"}},
		{"wrong credentials", locked, keychain{"me", "guess"}, []string{
			"refused the credentials or requires some", "hint: log in"}},
		{"forbidden", answering(t, http.StatusForbidden), me, []string{"refused the credentials", "team/scheduler"}},
		{"not found", answering(t, http.StatusNotFound), me, []string{"not found in registry", "hint: check the name"}},
		{"teapot", answering(t, http.StatusTeapot), me, []string{"returned an error", "418"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := c.host + "/team/scheduler:v1"
			_, err := Push(t.Context(), build(t, busyboxOptions(t)), ref, c.keychain)
			wantError(t, err, false, append(c.want, "push "+ref)...)
			o := busyboxOptions(t)
			o.Base, o.Keychain = Base{Reference: ref}, c.keychain
			_, err = Build(t.Context(), o)
			wantError(t, err, false, append(c.want, "pull "+ref)...)
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestNetworkErrorsOfARegistry(t *testing.T) {
	r, err := parseReference("registry.example.com/x:1")
	if err != nil {
		t.Fatal(err)
	}
	for want, cause := range map[string]error{
		"limits the request rate": &transport.Error{StatusCode: http.StatusTooManyRequests},
		"not found in registry": &transport.Error{StatusCode: http.StatusBadRequest,
			Errors: []transport.Diagnostic{{Code: transport.NameUnknownErrorCode}}},
		"host registry.example.com not found":        &net.DNSError{Err: "no such host"},
		"the certificate of registry.example.com":    x509.UnknownAuthorityError{},
		"does not use TLS":                           http.ErrSchemeMismatch,
		"cannot reach registry registry.example.com": errors.New("no route to host"),
	} {
		wantError(t, registryError("pull", r, fmt.Errorf("get: %w", cause)), false, "pull registry.example.com/x:1: ", want,
			"hint: ")
	}
}

func TestBaseThatIsNotInTheRegistry(t *testing.T) {
	o := busyboxOptions(t)
	o.Base = Base{Reference: newRegistry(t) + "/none:1"}
	_, err := Build(t.Context(), o)
	wantError(t, err, false, "not found in registry", "hint: check the name")
}

func TestPushWithCredentials(t *testing.T) {
	ref := answering(t, 0) + "/team/scheduler:v1"
	if _, err := Push(t.Context(), build(t, busyboxOptions(t)), ref, keychain{"me", "secret"}); err != nil {
		t.Error(err)
	}
}

func TestPushStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Push(ctx, build(t, busyboxOptions(t)), newRegistry(t)+"/x:1", nil)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCanonicalName(t *testing.T) {
	short, _ := strings.CutPrefix(name.DefaultRegistry, "index.")
	for ref, want := range map[string]string{
		"my-scheduler":                        short + "/library/my-scheduler:latest",
		"my-scheduler:v1":                     short + "/library/my-scheduler:v1",
		"team/my-scheduler:v1":                short + "/team/my-scheduler:v1",
		short + "/team/my-scheduler:v1":       short + "/team/my-scheduler:v1",
		name.DefaultRegistry + "/library/a:1": short + "/library/a:1",
		"localhost/my-scheduler:v1":           "localhost/my-scheduler:v1",
		"127.0.0.1:5000/s:1":                  "127.0.0.1:5000/s:1",
		"registry.example.com/a/b/c:1":        "registry.example.com/a/b/c:1",
	} {
		got, err := CanonicalName(ref)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", ref, err, diff)
		}
	}
	for _, ref := range []string{"", ":v1", "UPPER:v1", "a b:v1", "a:"} {
		_, err := CanonicalName(ref)
		wantError(t, err, true, "image name", "hint: use NAME:TAG")
	}
}

func TestPlainHTTPIsForLoopbackOnly(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1:5000": "http", "127.0.0.2:5000": "http", "[::1]:5000": "http", "localhost": "http",
		"localhost:5000":       "http",
		"registry.example.com": "https", "registry.example.com:5000": "https",
	} {
		r, err := parseReference(host + "/x:1")
		if err != nil || r.Context().Scheme() != want {
			t.Errorf("%s: scheme %v, want %s, error %v", host, r, want, err)
		}
	}
}
