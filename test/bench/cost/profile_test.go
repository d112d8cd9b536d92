//go:build linux

package cost

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scheduler reads the metrics and CPU profiles of a scheduler.
type scheduler struct {
	address string
	client  *http.Client
}

func newScheduler(address string) *scheduler {
	return &scheduler{address: address, client: &http.Client{
		Timeout: 5 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // the scheduler's own certificate
	}}
}

func (s *scheduler) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s: %s", path, response.Status, text)
	}
	return text, err
}

var cpuTime = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// awaitIdle waits until the scheduler has filled its caches: it then uses little CPU for two
// seconds.
func (s *scheduler) awaitIdle(ctx context.Context, b *testing.B) {
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
		text, err := s.get(ctx, "/metrics")
		if err != nil {
			continue // it does not listen yet
		}
		found := cpuTime.FindSubmatch(text)
		if found == nil {
			b.Fatal("the metrics have no CPU time")
		}
		used, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		idle++
		if last < 0 || used-last > little {
			idle = 0
		}
		last = used
	}
}

// Functions in the stacks of a profile: framework calls plugins at their extension points, and the
// others are in the plugins.
const (
	framework = "k8s.io/kubernetes/pkg/scheduler/framework/runtime.(*frameworkImpl)."
	portable  = "github.com/pmk-sched/pmk-sched/scheduler/" // plugins and their adapters
	others    = "sigs.k8s.io/scheduler-plugins/"
	wrappers  = "example.com/"
)

// profile returns the CPU profile of the next seconds.
func (s *scheduler) profile(ctx context.Context, b *testing.B, seconds int) []byte {
	b.Helper()
	content, err := s.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	if err != nil {
		b.Fatal(err)
	}
	return content
}

// traces returns the stacks of a profile as text.
func traces(ctx context.Context, b *testing.B, profile []byte) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "profile")
	if err := os.WriteFile(file, profile, 0o600); err != nil {
		b.Fatal(err)
	}
	text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", file).Output()
	if err != nil {
		b.Fatalf("read profile: %v", err)
	}
	return string(text)
}

// traceStart matches the first line of a stack, with its time.
var traceStart = regexp.MustCompile(`(?m)^ *([0-9.]+(?:µs|us|ms|s|mins?)) `)

// attribute adds up the CPU time of the extension points of the bundled plugin and of the other
// one, from stacks as pprof prints them.
func attribute(b *testing.B, text string) map[string]time.Duration {
	b.Helper()
	sums := map[string]time.Duration{}
	for _, stack := range strings.Split(text, "-----------+-")[1:] {
		found := traceStart.FindStringSubmatch(stack)
		if found == nil || !strings.Contains(stack, framework) {
			continue
		}
		taken, err := time.ParseDuration(found[1])
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case strings.Contains(stack, portable):
			sums[bundled] += taken
		case strings.Contains(stack, others) || strings.Contains(stack, wrappers):
			sums[native] += taken
		}
	}
	return sums
}
