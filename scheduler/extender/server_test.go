package extender

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startServer starts a server that runs until stop, which returns the result of Serve.
func startServer(t *testing.T, o ServeOptions, h http.Handler) (address string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	o.Listen, o.OnListen = "127.0.0.1:0", func(a net.Addr) { listening <- a }
	go func() { ended <- Serve(ctx, o, h) }()
	t.Cleanup(cancel)
	select {
	case a := <-listening:
		return a.String(), func() error {
			cancel()
			select {
			case err := <-ended:
				return err
			case <-time.After(patience):
				return errors.New("the server does not stop")
			}
		}
	case err := <-ended:
		t.Fatal(err)
		return "", nil
	}
}

func handlerOf(t *testing.T, o Options, plugins ...scheduler.Plugin) http.Handler {
	t.Helper()
	_, e := serveWith(t, nil, o, plugins...)
	return e.Handler()
}

func TestOnlyVerbsRequireClientCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, 1)
	files := TLSFiles{CertFile: write(t, dir, "tls.crt", cert), KeyFile: write(t, dir, "tls.key", key),
		ClientCAFile: write(t, dir, "ca.crt", cert)}
	verbs := append(DefaultVerbs(), VerbBind)
	address, stop := startServer(t, ServeOptions{TLS: files, AnonymousVerbs: []string{VerbPrioritize, VerbBind}},
		handlerOf(t, Options{Verbs: verbs}, labelled()))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	stranger, strangersKey := certificate(t, 3)
	strange, err := tls.X509KeyPair(stranger, strangersKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		certificates []tls.Certificate
		path         string
		want         int // 0: the connection fails
	}{
		{"none, verb", nil, "filter", http.StatusUnauthorized},
		{"none, probe", nil, "healthz", http.StatusOK},
		{"none, answered", nil, "answered", http.StatusOK},
		{"none, anonymous verb", nil, "prioritize", http.StatusOK},
		{"none, bind", nil, "bind", http.StatusUnauthorized},
		{"good, verb", []tls.Certificate{pair}, "filter", http.StatusOK},
		{"good, bind", []tls.Certificate{pair}, "bind", http.StatusBadRequest},
		{"of a stranger", []tls.Certificate{strange}, "healthz", 0},
	} {
		// Use HTTP/2, as some schedulers do.
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool,
			MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(c.certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &c.certificates[0], nil
			}}}
		method := http.MethodPost
		if c.path == "healthz" || c.path == "answered" {
			method = http.MethodGet
		}
		request, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+"/"+c.path,
			strings.NewReader(`{"Pod": {}, "NodeNames": ["a"]}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		switch {
		case err != nil && c.want == 0:
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case response.StatusCode != c.want || response.ProtoMajor != 2:
			t.Errorf("%s: got %s %s", c.name, response.Proto, response.Status)
		}
		if err == nil {
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		transport.CloseIdleConnections()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestOnlyConfiguredVerbsAreServed(t *testing.T) {
	bound := &bindings{}
	for name, c := range map[string]struct {
		verbs        []string
		filter, bind int
	}{
		"by default":  {nil, http.StatusOK, http.StatusNotFound},
		"filter":      {[]string{VerbFilter}, http.StatusOK, http.StatusNotFound},
		"bind, which": {[]string{VerbBind}, http.StatusNotFound, http.StatusUnauthorized}, // plain HTTP proves no identity
	} {
		t.Run(name, func(t *testing.T) {
			handle, err := NewHandle(HandleOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Options{Handle: handle, Policies: []Policy{{Plugin: labelled()}}, Verbs: c.verbs, Binder: bound})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(e.Handler())
			t.Cleanup(server.Close)
			if got, text := post(t, server, VerbFilter, `{"Pod": {}, "NodeNames": ["a"]}`); got != c.filter {
				t.Errorf("filter: %d %s", got, text)
			}
			if got, text := post(t, server, VerbBind,
				`{"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"}`); got != c.bind {
				t.Errorf("bind: %d %s", got, text)
			}
		})
	}
	if len(bound.pods) > 0 {
		t.Errorf("bound without an identity: %v", bound.pods)
	}
}

func TestServerWaitsForRunningRequests(t *testing.T) {
	asked, goOn := make(chan bool), make(chan bool)
	slow := filterBy("Slow", func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
		asked <- true
		<-goOn
		return nil
	})
	address, stop := startServer(t, ServeOptions{}, handlerOf(t, Options{}, slow))
	answered := make(chan string, 1)
	go func() {
		response, err := http.Post("http://"+address+"/filter", "application/json",
			strings.NewReader(`{"Pod": {}, "NodeNames": ["a"]}`))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			answered <- err.Error()
			return
		}
		answered <- body.String()
	}()
	receive(t, "the policy is asked", asked)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(goOn)
	if got := receive(t, "the request is answered", answered); !strings.Contains(got, `"NodeNames":["a"]`) {
		t.Errorf("got %s", got)
	}
	if err := receive(t, "the server has stopped", stopped); err != nil {
		t.Error(err)
	}
}

func TestReadyzFailsWhileServerStops(t *testing.T) {
	address, stop := startServer(t, ServeOptions{DrainTime: time.Second}, handlerOf(t, Options{}, labelled()))
	ready := func() int {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if got := ready(); got != http.StatusOK {
		t.Errorf("before: %d", got)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	eventually(t, "the server is no longer ready, and never an error", func() (bool, string) {
		status := ready()
		return status != http.StatusOK, fmt.Sprint(status)
	})
	if err := receive(t, "the server has stopped", stopped); err != nil {
		t.Error(err)
	}
}

// A body that arrives too slowly is answered at the time limit, and the connection is closed.
func TestSlowBodyTimesOut(t *testing.T) {
	address, _ := startServer(t, ServeOptions{},
		handlerOf(t, Options{BodyTime: 50 * time.Millisecond, MaxMemory: leastMemory}, labelled()))
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection,
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"Pod\":"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusRequestTimeout ||
		!strings.Contains(body.String(), "only 7 bytes of the body arrived within 50ms") {
		t.Errorf("got %s %s", response.Status, &body)
	}
	// Its memory is free again, although it is all that there is.
	again, err := http.Post("http://"+address+"/filter", "application/json",
		strings.NewReader(`{"Pod":{},"NodeNames":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Body.Close(); err != nil || again.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s, %v", again.Status, err)
	}
}

// When the scheduler gives up after its httpTimeout, the request ends.
func TestCanceledRequestEnds(t *testing.T) {
	began, ended := make(chan bool), make(chan error, 1)
	endless := preFilterPolicy{"Endless",
		func(ctx context.Context, _ scheduler.State, _ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
			close(began)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, scheduler.Error(ctx.Err())
		}}
	address, _ := startServer(t, ServeOptions{}, handlerOf(t, Options{}, endless))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/filter",
		strings.NewReader(`{"Pod": {}, "NodeNames": ["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-began
		cancel()
	}()
	if response, err := http.DefaultClient.Do(request); err == nil {
		t.Errorf("answered %s", response.Status)
		_ = response.Body.Close()
	}
	if err := receive(t, "the policy ends", ended); err == nil {
		t.Error("the policy was not canceled")
	}
}

func TestSlowPolicyIsAnError(t *testing.T) {
	endless := preFilterPolicy{"Endless",
		func(ctx context.Context, _ scheduler.State, _ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
			<-ctx.Done()
			return nil, scheduler.Error(ctx.Err())
		}}
	server, _ := serveWith(t, nil, Options{CallTime: 20 * time.Millisecond}, endless)
	got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("a")})
	if want := "extender pmk-extender: filter: the policies took longer than 20ms"; got.Error != want {
		t.Errorf("got %q", got.Error)
	}
}
