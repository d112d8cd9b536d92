//go:build linux

package cost

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// metrics reads the metrics of a scheduler.
type metrics struct {
	address string
	client  *http.Client
}

func newMetrics(address string) *metrics {
	return &metrics{address: address, client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // the scheduler's own certificate
	}}
}

// reading is the metrics at a time: the sum of the durations and how many there are, by profile and extension point, and the CPU time of the process.
type reading struct {
	sums, counts map[string]map[string]float64
	cpu          float64
}

var (
	durations = regexp.MustCompile(`(?m)^scheduler_framework_extension_point_duration_seconds_(sum|count)\{extension_point="(\w+)",profile="(\w+)",status="\w+"\} (\S+)$`)
	cpuTime   = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)
)

func (m *metrics) get(ctx context.Context) (r reading, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.address+"/metrics", http.NoBody)
	if err != nil {
		return r, err
	}
	response, err := m.client.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return r, fmt.Errorf("read metrics: %s, %w", response.Status, err)
	}
	r.sums, r.counts = map[string]map[string]float64{}, map[string]map[string]float64{}
	for _, profile := range []string{none, bundled, native} {
		r.sums[profile], r.counts[profile] = map[string]float64{}, map[string]float64{}
	}
	for _, found := range durations.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(found[4], 64)
		if err != nil {
			return r, err
		}
		into := r.sums
		if found[1] == "count" {
			into = r.counts
		}
		into[found[3]][strings.ToLower(found[2][:1])+found[2][1:]] += value
	}
	found := cpuTime.FindStringSubmatch(string(text))
	if found == nil {
		return r, fmt.Errorf("read metrics: there is no CPU time")
	}
	r.cpu, err = strconv.ParseFloat(found[1], 64)
	return r, err
}

func (m *metrics) read(ctx context.Context, b *testing.B) reading {
	b.Helper()
	r, err := m.get(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// awaitIdle waits until the process has read what it needs: it uses little CPU for two seconds.
func (m *metrics) awaitIdle(ctx context.Context, b *testing.B) {
	b.Helper()
	const pause, little, enough, patience = 500 * time.Millisecond, 0.03, 4, 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := -1.0
	for idle := 0; idle < enough; {
		select {
		case <-ctx.Done():
			b.Fatal("the scheduler does not become idle")
		case <-time.After(pause):
		}
		r, err := m.get(ctx)
		if err != nil {
			continue // it does not listen yet
		}
		idle++
		if last < 0 || r.cpu-last > little {
			idle = 0
		}
		last = r.cpu
	}
}

// await waits until the first pods of all profiles have a node, and returns what was measured by then.
func (m *metrics) await(ctx context.Context, b *testing.B, profiles map[string]plugin) reading {
	b.Helper()
	for {
		r := m.read(ctx, b)
		least := r.counts[none][placed]
		for profile := range profiles {
			least = min(least, r.counts[profile][placed])
		}
		if least >= warmup {
			return r
		}
		select {
		case <-ctx.Done():
			b.Fatal("the scheduler has not placed the first pods")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// placed is an extension point that each pod passes once, when it has a node.
const placed = "reserve"

// until returns the cost of the extension points of a profile between two readings.
func (r reading) until(end reading, profile string, points []string) cost {
	perPod := func(profile, point string) float64 {
		return (end.sums[profile][point] - r.sums[profile][point]) / (end.counts[profile][placed] - r.counts[profile][placed])
	}
	c := cost{}
	for _, point := range points {
		if _, measured := end.sums[profile][point]; measured {
			c[point] = perPod(profile, point) - perPod(none, point)
		}
	}
	return c
}
