package programs

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/loopback"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

const (
	// reachTime is the maximum time for servers to answer at all. Without a network, the user waits
	// that long for the compiler to start.
	reachTime = 4 * time.Second
	// maxProgram is the size in bytes of the largest program that is accepted. The largest one that
	// Kubernetes has published is below 160 MB.
	maxProgram = 512 << 20
	// maxChecksum is the size in bytes of the largest file with a checksum.
	maxChecksum = 1 << 10
)

// UnavailableError is returned if published programs cannot be downloaded: the servers do not
// answer, or they do not have the program.
type UnavailableError struct{ cause error }

// Error returns the cause.
func (e *UnavailableError) Error() string {
	return "the programs that Kubernetes publishes are unavailable: " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.cause }

// Hint returns how to do without them.
func (e *UnavailableError) Hint() string {
	return "check the network, use mirrors (--kubernetes-registry, --kubernetes-downloads), or compile: --programs build"
}

// checkServers checks that the servers that have the named programs answer.
func (f *Finder) checkServers(ctx context.Context, names []string) error {
	var servers []string
	for _, name := range names {
		server := cmp.Or(f.Downloads, DefaultDownloads) + "/"
		if _, inImage := images[name]; inImage {
			server = registryURL(cmp.Or(f.Registry, DefaultRegistry))
		}
		if err := checkURL(server); err != nil {
			return err
		}
		servers = append(servers, server)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(f.reach, reachTime))
	defer cancel()
	return f.OnStep.Do("look for the programs that Kubernetes publishes", func() error { return answer(ctx, servers) })
}

// answer sends each server one request. Any answer will do.
func answer(ctx context.Context, servers []string) error {
	answers := map[string]chan error{}
	for _, server := range servers {
		if answers[server] != nil {
			continue
		}
		result := make(chan error, 1)
		answers[server] = result
		go func() {
			response, err := get(ctx, http.MethodHead, server)
			if err == nil {
				err = response.Body.Close()
			}
			result <- err
		}()
	}
	for _, result := range answers {
		if err := <-result; err != nil {
			return &UnavailableError{cause: err}
		}
	}
	return nil
}

// registryURL returns a registry's URL, with the scheme that go-containerregistry's package name
// chooses: loopback addresses do not use TLS.
func registryURL(registry string) string {
	host, _, _ := strings.Cut(registry, "/")
	if loopback.Is(host) {
		return "http://" + host + "/v2/"
	}
	return "https://" + host + "/v2/"
}

// checkURL refuses addresses that are not authenticated: a checksum is as good as its server.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Host)) {
		return problem.Invalidf("use https://HOST/PATH; plain HTTP is allowed for loopback addresses only",
			"invalid address of published programs %q", address)
	}
	return nil
}

func get(ctx context.Context, method, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("too many redirects")
		}
		return checkURL(next.URL.String())
	}}
	return client.Do(request)
}

func (f *Finder) downloadURL(name string, r Request) string {
	host := build.Host()
	return fmt.Sprintf("%s/release/%s/bin/%s/%s/%s", strings.TrimSuffix(cmp.Or(f.Downloads, DefaultDownloads), "/"),
		r.Release, host.OS, host.Arch, name)
}

// download writes a program to a file if its digest is the published one.
func (f *Finder) download(ctx context.Context, from, to string) error {
	want, err := checksum(ctx, from+".sha256")
	if err != nil {
		return err
	}
	if err := fetchFile(ctx, from, to, maxProgram); err != nil {
		return err
	}
	_, got, err := build.HashFile(to)
	if err != nil {
		return err
	}
	if got != want {
		return problem.Errorf("try again, and check the mirror if one is set; --programs build compiles it",
			"%s: expected sha256 %s, got %s", from, want, got)
	}
	return os.Chmod(to, 0o755)
}

// checksum reads a file with another file's digest.
func checksum(ctx context.Context, from string) (string, error) {
	body, err := open(ctx, from)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxChecksum))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", from, err)
	}
	fields := strings.Fields(string(text))
	if len(fields) > 0 {
		if sum, err := hex.DecodeString(fields[0]); err == nil && len(sum) == 32 {
			return strings.ToLower(fields[0]), nil
		}
	}
	return "", fmt.Errorf("read %s: it is not a sha256 digest", from)
}

// open requests a file. A server that does not have it is an *UnavailableError.
func open(ctx context.Context, from string) (io.ReadCloser, error) {
	response, err := get(ctx, http.MethodGet, from)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	err = fmt.Errorf("get %s: %s", from, response.Status)
	if response.StatusCode == http.StatusNotFound {
		err = &UnavailableError{cause: err}
	}
	return nil, errors.Join(err, response.Body.Close())
}

func fetchFile(ctx context.Context, from, to string, limit int64) (err error) {
	body, err := open(ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	tooLarge := fmt.Errorf("it is larger than %d MiB", limit>>20)
	if _, err := io.Copy(file, &safeio.LimitedReader{R: body, N: limit, Err: tooLarge}); err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	return nil
}
