//go:build linux

package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// BuildExtender compiles pmk-extender into a folder and returns its path.
func BuildExtender(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "pmk-extender")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/pmk-sched/pmk-sched/cmd/pmk-extender")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pmk-extender: %w\n%s", err, out)
	}
	return program, nil
}

// Extender is a pmk-extender that can be started again and again at the same address.
type Extender struct {
	*Process
	// URL is where its verbs are.
	URL string
	// Client reaches it; one that speaks HTTPS after Trust.
	Client *http.Client
}

// NewExtender prepares an extender that speaks plain HTTP, or HTTPS if scheme says so; then args name the certificate.
func (p *Plane) NewExtender(t testing.TB, program, scheme string, args ...string) *Extender {
	t.Helper()
	address := FreeAddress(t)
	args = append([]string{"--listen", address, "--kubeconfig", p.Kubeconfig}, args...)
	return &Extender{Process: NewProcess(t, program, args...), URL: scheme + "://" + address, Client: &http.Client{Timeout: 10 * time.Second}}
}

// Trust has Client take what an authority signed, PEM.
func (e *Extender) Trust(t testing.TB, authority []byte) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("there is no certificate of an authority")
	}
	e.Client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

// Await waits until it is ready, but for the checks that exclude names.
func (e *Extender) Await(ctx context.Context, t testing.TB, exclude string) {
	t.Helper()
	Eventually(ctx, t, "the extender is ready", func(ctx context.Context) (bool, string) {
		err := e.Ready(ctx, exclude)
		return err == nil, fmt.Sprint(err)
	})
}

// Ready returns why it is not ready, but for the checks that exclude names.
func (e *Extender) Ready(ctx context.Context, exclude string) error {
	_, err := e.get(ctx, "/readyz?exclude="+exclude)
	return err
}

// get asks for a page that is no verb.
func (e *Extender) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+path, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := e.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, text.String())
	}
	return text.String(), nil
}

// Scores asks for the scores of nodes as a scheduler does.
func (e *Extender) Scores(ctx context.Context, pod *corev1.Pod, nodes ...string) (map[string]int64, error) {
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, NodeNames: &nodes})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/prioritize", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := e.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list extenderv1.HostPriorityList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", response.Status, err)
	}
	scores := map[string]int64{}
	for _, one := range list {
		scores[one.Host] = one.Score
	}
	return scores, nil
}

// Metric returns the value of one series of its metrics, 0 if it is not there.
func (e *Extender) Metric(ctx context.Context, series string) (float64, error) {
	text, err := e.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, nil
}
