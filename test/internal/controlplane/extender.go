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
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Extender is a pmk-extender that can be restarted at the same address.
type Extender struct {
	*Process
	// URL is where its verbs are.
	URL string
	// Client reaches it; with https after Trust.
	Client *http.Client
}

// NewExtender prepares an extender that serves http or https, as scheme specifies; for https args
// name the certificate.
func (p *Plane) NewExtender(t testing.TB, scheme string, args ...string) *Extender {
	t.Helper()
	address := FreeAddress(t)
	args = append([]string{"--listen", address, "--kubeconfig", p.Kubeconfig}, args...)
	return &Extender{Process: NewProcess(t, run.Extender(t), args...), URL: scheme + "://" + address,
		Client: &http.Client{Timeout: 10 * time.Second}}
}

// Trust makes Client accept certificates of an authority, given as PEM.
func (e *Extender) Trust(t testing.TB, authority []byte) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("the PEM has no certificate")
	}
	e.Client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

// Await waits until it is ready, except for the check that exclude names.
func (e *Extender) Await(ctx context.Context, t testing.TB, exclude string) {
	t.Helper()
	run.Eventually(t, "the extender is ready", func(ctx context.Context) (bool, string) {
		err := e.Ready(ctx, exclude)
		return err == nil, fmt.Sprint(err)
	})
}

// Ready returns why it is not ready, except for the check that exclude names.
func (e *Extender) Ready(ctx context.Context, exclude string) error {
	_, err := e.get(ctx, "/readyz?exclude="+exclude)
	return err
}

// get reads a page that is not a verb.
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

// Scores requests the scores of nodes as a scheduler does.
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
