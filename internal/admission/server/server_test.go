package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

const token = "0123456789abcdef"

// pair is a certificate of 127.0.0.1.
type pair struct{ cert *tls.Certificate }

func (p pair) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.cert, nil }
func (pair) Token() string                                                { return token }

// started is a running server and its client.
type started struct {
	*http.Client
	address  string
	registry *prometheus.Registry
	stop     func()
	ended    chan error
}

func start(t *testing.T, handlers map[string]Handler, drain time.Duration) *started {
	t.Helper()
	ca, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "test"},
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Sign(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(leaf.Cert, leaf.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	ctx, cancel := context.WithCancel(t.Context())
	s := &started{registry: prometheus.NewRegistry(), stop: cancel, ended: make(chan error, 1),
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	listening := make(chan string, 1)
	go func() {
		s.ended <- Run(ctx, Options{Listen: "127.0.0.1:0", Certificates: pair{&cert}, Handlers: handlers, Log: zap.NewNop(),
			Metrics: s.registry, DrainTime: drain, OnListen: func(a net.Addr) { listening <- a.String() }})
	}()
	s.address = <-listening
	t.Cleanup(func() {
		s.CloseIdleConnections()
		cancel()
		select {
		case err := <-s.ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the server does not stop")
		}
	})
	return s
}

// review is the text of a review.
func review(t *testing.T, r *admissionv1.AdmissionRequest) string {
	t.Helper()
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// post sends a body and returns the status and the answer.
func (s *started) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	response, err := s.Post("https://"+s.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// results returns the number of requests with a result.
func (s *started) results(t *testing.T, webhook, result string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "pmk_sched_admission_requests_total" && labels["webhook"] == webhook &&
				labels["result"] == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// answerOf decodes a review's answer.
func answerOf(t *testing.T, text string) *admissionv1.AdmissionResponse {
	t.Helper()
	var r admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Response == nil ||
		r.APIVersion != "admission.k8s.io/v1" || r.Kind != "AdmissionReview" || r.Request != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return r.Response
}

func TestReviewsAreAnswered(t *testing.T) {
	var paths []string
	s := start(t, map[string]Handler{"x": func(_ context.Context, path string,
		r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
		paths = append(paths, path)
		return &admissionv1.AdmissionResponse{Allowed: r.Name == "good", Result: &metav1.Status{Code: 409}}, path != ""
	}}, 0)
	for path, name := range map[string]string{"/x": "good", "/x/of/y": "bad"} {
		status, text := s.post(t, "/"+token+path, review(t, &admissionv1.AdmissionRequest{UID: "1-2", Name: name}))
		answer := answerOf(t, text)
		if status != http.StatusOK || answer.UID != "1-2" || answer.Allowed != (name == "good") ||
			answer.Result.Code != 409 || paths[len(paths)-1] != strings.TrimPrefix(path, "/x") {
			t.Errorf("%s: %d %s, path %q", path, status, text, paths)
		}
	}
	if s.results(t, "x", resultAllowed) != 1 || s.results(t, "x", resultDenied) != 1 {
		t.Error("the results were not counted")
	}
	if n := testutil.CollectAndCount(s.registry, "pmk_sched_admission_request_duration_seconds"); n != 1 {
		t.Errorf("%d histograms", n)
	}
}

// The connection ends with the answer if another replica is the better one to ask, and only then.
func TestConnectionsMoveToABetterReplica(t *testing.T) {
	for elsewhere, want := range map[bool]int32{false: 1, true: 3} {
		s := start(t, map[string]Handler{"x": func(context.Context, string,
			*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
			return &admissionv1.AdmissionResponse{Allowed: true}, elsewhere
		}}, 0)
		var opened atomic.Int32
		dialer := net.Dialer{}
		s.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return dialer.DialContext(ctx, network, address)
		}
		for range 3 {
			if !s.ok(t) {
				t.Error("not allowed")
			}
		}
		if got := opened.Load(); got != want {
			t.Errorf("elsewhere %t: %d connections for 3 requests, expected %d", elsewhere, got, want)
		}
	}
}

// Without an answer of the handler, the request is allowed.
func TestFailuresOfHandlersAllowTheRequest(t *testing.T) {
	var late atomic.Bool
	s := start(t, map[string]Handler{
		"panics": func(context.Context, string, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
			panic("x")
		},
		"silent": func(context.Context, string, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
			return nil, true
		},
		"hangs": func(ctx context.Context, _ string, _ *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			late.Store(true)
			return &admissionv1.AdmissionResponse{}, true
		},
	}, 0)
	for name, result := range map[string]string{"panics": resultError, "silent": resultError, "hangs": resultLate} {
		status, text := s.post(t, "/"+token+"/"+name, review(t, &admissionv1.AdmissionRequest{UID: "u"}))
		if a := answerOf(t, text); status != http.StatusOK || !a.Allowed || a.UID != "u" || s.results(t, name, result) != 1 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for !late.Load() {
		time.Sleep(time.Millisecond)
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	s := start(t, map[string]Handler{"x": func(context.Context, string,
		*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
		t.Error("the handler was called")
		return nil, false
	}}, 0)
	good := review(t, &admissionv1.AdmissionRequest{})
	for name, c := range map[string]struct {
		method, path, kind, body string
		status                   int
	}{
		"no token":           {path: "/x", status: 404},
		"another token":      {path: "/" + strings.Repeat("0", len(token)) + "/x", status: 404},
		"an unknown webhook": {path: "/" + token + "/y", status: 404},
		"nothing":            {path: "/", status: 404},
		"a GET":              {method: http.MethodGet, status: 405},
		"another type":       {kind: "application/yaml", status: 415},
		"no type":            {kind: " ", status: 415},
		"v1beta1":            {body: strings.Replace(good, "/v1\"", "/v1beta1\"", 1), status: 400},
		"another kind":       {body: strings.Replace(good, "AdmissionReview", "Pod", 1), status: 400},
		"no request":         {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, status: 400},
		"no JSON":            {body: "{", status: 400},
		"nothing in it":      {body: " ", status: 400},
		"a body of 4 MiB":    {body: strings.Repeat(" ", 4<<20), status: 413},
	} {
		t.Run(name, func(t *testing.T) {
			if c.method == "" {
				c.method = http.MethodPost
			}
			if c.path == "" {
				c.path = "/" + token + "/x"
			}
			if c.body == "" {
				c.body = good
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, "https://"+s.address+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if c.kind != "" {
				r.Header.Set("Content-Type", strings.TrimSpace(c.kind))
			}
			response, err := s.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("status %d, expected %d", response.StatusCode, c.status)
			}
		})
	}
	t.Run("no length", func(t *testing.T) {
		response, err := s.Post("https://"+s.address+"/"+token+"/x", "application/json",
			io.MultiReader(strings.NewReader(good)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusLengthRequired {
			t.Error(response.Status)
		}
	})
}

// dial opens a connection and sends text.
func (s *started) dial(t *testing.T, text string) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", s.address, s.Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *started) ok(t *testing.T) bool {
	t.Helper()
	status, text := s.post(t, "/"+token+"/x", review(t, &admissionv1.AdmissionRequest{}))
	return status == http.StatusOK && answerOf(t, text).Allowed
}

func allow(context.Context, string, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
	return &admissionv1.AdmissionResponse{Allowed: true}, false
}

// A client that does not send what it announces, or sends nothing, loses its connection, and keeps
// no other from being served.
func TestSlowClientsEnd(t *testing.T) {
	s := start(t, map[string]Handler{"x": allow}, 0)
	for name, text := range map[string]string{
		"a header": "POST /" + token + "/x HTTP/1.1\r\nHost:",
		"a body": "POST /" + token + "/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			"Content-Length: 3000000\r\n\r\n{",
	} {
		began := time.Now()
		c := s.dial(t, text)
		if !s.ok(t) {
			t.Errorf("%s: others are not served", name)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: ended after %s", name, took)
		}
	}
}

// The memory for large bodies is bounded: more of them wait, and are refused when they have waited
// long enough. Small requests do not wait for them.
func TestManyLargeBodiesAreBounded(t *testing.T) {
	s := start(t, map[string]Handler{"x": allow}, 0)
	head := fmt.Sprintf("POST /%s/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{",
		token, maxBody)
	var held []*tls.Conn
	for range bodyMemory/maxBody + 3 {
		held = append(held, s.dial(t, ""))
	}
	for _, c := range held {
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
	}
	if !s.ok(t) {
		t.Error("others are not served meanwhile")
	}
	refused := 0
	for _, c := range held {
		answer, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(answer, []byte("503 Service Unavailable")) {
			refused++
		}
	}
	if refused == 0 || refused > 3 {
		t.Errorf("%d of %d were refused", refused, len(held))
	}
	if !s.ok(t) {
		t.Error("others are not served")
	}
}

// What a request takes is given back, whether it could be read or not.
func TestRequestsOneAfterTheOtherAreServed(t *testing.T) {
	s := start(t, map[string]Handler{"x": allow}, 0)
	large := review(t, &admissionv1.AdmissionRequest{Name: strings.Repeat("a", 3<<20)})
	for range bodyMemory/len(large) + 2 {
		if status, text := s.post(t, "/"+token+"/x", large); status != http.StatusOK {
			t.Fatalf("%d %.100s", status, text)
		}
		if status, text := s.post(t, "/"+token+"/x", large[:len(large)-1]); status != http.StatusBadRequest {
			t.Fatalf("%d %.100s", status, text)
		}
	}
	for range maxRunning + 1 {
		if !s.ok(t) {
			t.Fatal("not served")
		}
	}
	if n := s.results(t, "x", resultBusy); n > 0 {
		t.Errorf("%.0f were not decided", n)
	}
}

// The oldest connections that have sent nothing end for new ones.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := start(t, map[string]Handler{"x": allow}, 0)
	if !s.ok(t) { // keeps its connection
		t.Fatal("not served")
	}
	for range maxConnections + 10 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if !s.ok(t) {
		t.Error("a client that was served before is not served")
	}
	s.CloseIdleConnections()
	if !s.ok(t) {
		t.Error("a new client is not served")
	}
}

func TestTooManyHandlersAllowTheRequest(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s := &reviews{Options: Options{Log: zap.NewNop()}, metrics: m, running: make(chan struct{}, 1)}
	s.running <- struct{}{}
	answer, _, result := s.ask(t.Context(), "x", "", func(context.Context, string,
		*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, bool) {
		t.Error("the handler was called")
		return nil, false
	}, nil)
	if !answer.Allowed || result != resultBusy {
		t.Errorf("%+v %s", answer, result)
	}
}

func TestAServerThatStopsStillAnswers(t *testing.T) {
	s := start(t, map[string]Handler{"x": allow}, 300*time.Millisecond)
	s.stop()
	if !s.ok(t) {
		t.Error("not served while it drains")
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	if _, err := s.Post("https://"+s.address+"/", "", nil); err == nil {
		t.Error("served after its end")
	}
}
