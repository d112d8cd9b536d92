//go:build linux && cases

package ask

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	token = "the token of this test"
	// mostMemory is the limit on the memory of `ask serve` without its scheduler.
	mostMemory = 512 << 20
	// mostWait is the limit on an answer to a client who asks little: one question of another client
	// may end before, and be forgotten.
	mostWait = time.Minute
	// hostileMinutes is the time of the test, unless MINUTES is set.
	hostileMinutes = 10
)

// Clients that ask too much, send slowly, hang up or send no questions do not keep others from
// their answers, and take a bounded amount of memory.
func TestHostileClientsDelayNobody(t *testing.T) {
	minutes := hostileMinutes
	if text := os.Getenv("MINUTES"); text != "" {
		var err error
		if minutes, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p, _, config := plane(t, apiserver.Release)
	s, address, authority := serveTLS(t, p, config)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer stop()
	var all sync.WaitGroup
	h := hostile{address: address, authority: authority}
	for range 12 {
		for _, act := range []func(context.Context, *rand.Rand){
			h.asksMuch, h.hangsUp, h.sendsSlowly, h.sendsAnything, h.opens,
		} {
			random := rand.New(rand.NewPCG(rand.Uint64(), 1))
			all.Go(func() {
				for ctx.Err() == nil {
					act(ctx, random)
					h.count.Add(1)
				}
			})
		}
	}
	client := ask.Client{Address: "https://" + address, Token: token, CA: authority.Cert}
	var q ask.Question
	var manifest map[string]any
	decode(t, job("modest", "500m", "200Mi", 3, ""), &manifest)
	q.Manifests = append(q.Manifests, manifest)
	answers, longest := 0, time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		a, err := client.Ask(t.Context(), q)
		took := time.Since(began)
		if err != nil || a.Fits != ask.Yes || took > mostWait {
			t.Errorf("after %s: %+v, %v", took, a, err)
		}
		answers, longest = answers+1, max(longest, took)
		_ = clock.Sleep(ctx, time.Second) // until the end
	}
	all.Wait()
	memory := peak(t, s.cmd.Process.Pid)
	t.Logf("%d minutes: %d acts of hostile clients; %d answers, the longest after %s; %d MiB", minutes, h.count.Load(),
		answers, longest.Round(time.Millisecond), memory>>20)
	if memory > mostMemory {
		t.Errorf("the server took %d MiB", memory>>20)
	}
}

// serveTLS starts a server at an address.
func serveTLS(t *testing.T, p *controlplane.Plane, config string) (*server, string, *certificates.Authority) {
	t.Helper()
	authority := apiserver.NewAuthority(t)
	pair, err := authority.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "ask"},
		IPAddresses: []net.IP{{127, 0, 0, 1}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, p, "tcp", address, "--config", config, "--listen", address,
		"--tls-cert-file", run.WriteFile(t, "tls.crt", string(pair.Cert)),
		"--tls-private-key-file", run.WriteFile(t, "tls.key", string(pair.Key)),
		"--token-file", run.WriteFile(t, "token", token))
	return s, address, authority
}

// peak returns the largest memory of a process, in bytes.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// hostile is a client at another address, who has the token.
type hostile struct {
	address   string
	authority *certificates.Authority
	count     atomic.Int64
}

func (h *hostile) transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(h.authority.Cert)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP{127, 0, 0, 2}}}
	return &http.Transport{DialContext: from.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}

// post sends a body, and reads the answer.
func (h *hostile) post(ctx context.Context, body io.Reader, size int64, token string) {
	transport := h.transport()
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+h.address+"/v1/ask", body)
	if err != nil {
		return
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // whatever it is
}

// large returns a question about as many pods as are allowed, most of which do not fit.
func large(random *rand.Rand) string {
	text, _ := json.Marshal(map[string]any{"count": 1 + random.IntN(ask.MostPods), "manifests": []any{map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{
				"requests": map[string]any{"cpu": fmt.Sprint(random.IntN(5), "00m")}}}}}}}}) // it can be encoded
	return string(text)
}

func (h *hostile) asksMuch(ctx context.Context, random *rand.Rand) {
	text := large(random)
	h.post(ctx, strings.NewReader(text), int64(len(text)), token)
}

func (h *hostile) hangsUp(ctx context.Context, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(2000))*time.Millisecond)
	defer cancel()
	h.asksMuch(ctx, random)
}

// slow is a body of which a byte comes each second.
type slow struct {
	ctx  context.Context
	left int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if err := clock.Sleep(s.ctx, time.Second); err != nil {
		return 0, err
	}
	s.left--
	p[0] = ' '
	return 1, nil
}

func (h *hostile) sendsSlowly(ctx context.Context, _ *rand.Rand) {
	h.post(ctx, &slow{ctx: ctx, left: ask.MostBody}, ask.MostBody, token)
}

func (h *hostile) sendsAnything(ctx context.Context, random *rand.Rand) {
	texts := []string{
		strings.Repeat("[", ask.MostBody), `{"manifests":[` + strings.Repeat(`{"kind":"Pod"},`, 60000) + `{}]}`,
		`{"count":1e99}`, `{"manifests":[{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{` +
			`"parallelism":2147483647,"completions":2147483647,"template":{"spec":{"containers":[{"name":"c"}]}}}}]}`,
		`{"manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + strings.Repeat("a", 1<<19) + `"}}]}`,
	}
	text := texts[random.IntN(len(texts))]
	h.post(ctx, strings.NewReader(text), int64(len(text)), []string{token, "another token"}[random.IntN(2)])
}

// opens opens a connection without a handshake.
func (h *hostile) opens(ctx context.Context, random *rand.Rand) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP{127, 0, 0, 2}}}
	c, err := from.DialContext(ctx, "tcp", h.address)
	if err != nil {
		_ = clock.Sleep(ctx, time.Second) // all ports are in use
		return
	}
	defer c.Close()
	_ = clock.Sleep(ctx, time.Duration(random.IntN(10))*time.Second) // until the end
}
