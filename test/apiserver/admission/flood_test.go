//go:build linux

package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

const (
	// floodTime is the least time for which a replica gets hostile requests. They end when one of
	// each kind has been answered, which takes longer on a loaded machine, or after maxFloodTime.
	floodTime    = 3 * time.Second
	maxFloodTime = time.Minute
	// memoryLimit of a replica's container, in MiB.
	memoryLimit = 512
)

// attack is one kind of hostile requests.
type attack struct {
	name string
	// clients send them at the same time, one after the other.
	clients    int
	path, body string
	// slow clients send a part of the body only.
	slow bool
	// connects is set if each request opens a connection.
	connects bool
	answers  atomic.Int64
}

// attacks returns requests of all kinds to a webhook. Any pod can send those without the token in
// path.
func attacks(path string) []*attack {
	const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", ` +
		`"operation": "CREATE", "namespace": %q, "name": "x", "resource": {"version": "v1", "resource": "pods"}, ` +
		`"subResource": %q, "object": %s}}`
	binding := fmt.Sprintf(review, "kube-system", "binding", `{"target": {"name": "n"}}`)
	routes := strings.TrimSuffix(path, "arbiter") + "route/" + routed
	return []*attack{
		{name: "reviews", clients: 8, path: path, body: binding},
		{name: "an unknown version", clients: 1, path: path, body: strings.Replace(binding, "/v1", "/v9", 1)},
		{name: "a pod with a million tolerations", clients: 2, path: routes, body: fmt.Sprintf(review, routed, "",
			`{"spec": {"tolerations": [`+strings.Repeat("{},", 1<<20)+`{}]}}`)},
		{name: "a review with a million groups", clients: 1, path: path, body: strings.Replace(binding, `"uid"`,
			`"userInfo": {"groups": [`+strings.Repeat(`"",`, 1<<20)+`""]}, "uid"`, 1)},
		{name: "a body of 8 MiB", clients: 1, path: path, body: strings.Repeat(" ", 8<<20)},
		{name: "slow bodies", clients: 50, path: path, body: strings.Repeat(" ", 3<<20), slow: true},
		{name: "without the token", clients: 4, path: "/" + strings.Repeat("0", 32) + "/arbiter", body: binding,
			connects: true},
	}
}

// send sends requests until ctx ends.
func (a *attack) send(ctx context.Context, address string) {
	//nolint:gosec // as an attacker
	insecure := &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure, DisableKeepAlives: a.connects}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		if a.slow {
			a.stall(ctx, address, insecure)
			continue
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+a.path, strings.NewReader(a.body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", "application/json")
		if response, err := client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // the answer does not matter
			_ = response.Body.Close()
			a.answers.Add(1)
		}
	}
}

// stall sends the header of a request and a byte of its body, and waits for the end of the
// connection.
func (a *attack) stall(ctx context.Context, address string, config *tls.Config) {
	c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n ",
		a.path, len(a.body))
	_, _ = io.Copy(io.Discard, c) // until the server ends it
	_ = c.Close()
	a.answers.Add(1)
}

func allAnswered(attacks []*attack) bool {
	return !slices.ContainsFunc(attacks, func(a *attack) bool { return a.answers.Load() == 0 })
}

// flood sends hostile requests to the replica that decides. Meanwhile bindings are decided as ever.
func (c *cluster) flood(t *testing.T, leader *webhooks.Replica, namespace string) {
	ctx, end := context.WithTimeout(t.Context(), maxFloodTime)
	defer end()
	began := time.Now()
	all := attacks(*c.clientConfig(t).Service.Path)
	var group sync.WaitGroup
	for _, a := range all {
		for range a.clients {
			group.Go(func() { a.send(ctx, leader.Address) })
		}
	}
	rounds, undecided := 0, 0
	for ; ctx.Err() == nil && (time.Since(began) < floodTime || !allAnswered(all)); rounds++ {
		failed := c.race(t, namespace)
		for _, err := range failed {
			if !apierrors.IsConflict(err) {
				t.Errorf("a binding failed: %v", err)
			}
		}
		if len(failed) != 1 {
			undecided++
		}
	}
	took := time.Since(began)
	end()
	group.Wait()
	if rounds == 0 || undecided > 0 {
		t.Errorf("of %d pairs of bindings, the arbiter did not decide %d", rounds, undecided)
	}
	for _, a := range all {
		t.Logf("%s: %.0f a second", a.name, float64(a.answers.Load())/took.Seconds())
		if a.answers.Load() == 0 {
			t.Errorf("%s: not answered", a.name)
		}
	}
	used := run.MemoryOf(t, leader.PID(), "VmHWM")
	t.Logf("%d pairs of bindings, memory %.0f MiB", rounds, used)
	if used > memoryLimit {
		t.Errorf("the replica took %.0f MiB", used)
	}
}
