//go:build linux

// Package calls shows what extenders do to real placements: the API server and the kube-scheduler of a release, configured as pmk-sched
// renders it, and pmk-extender as a process; and what becomes of pods when the extender does not answer.
package calls

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// program is the compiled pmk-extender.
var program string

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "pmk-extender-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if program, err = controlplane.BuildExtender(ctx, dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// subject is a release and how its scheduler is told of extenders.
type subject struct {
	release string
	// policy: by a legacy Policy, else by a KubeSchedulerConfiguration.
	policy bool
}

func (s subject) String() string {
	if s.policy {
		return s.release + "-policy"
	}
	return s.release
}

// scene is a subject while it is tried.
type scene struct {
	*controlplane.Plane
	subject
}

// eachSubject runs tests on the control plane of each subject.
func eachSubject(t *testing.T, subjects []subject, tests map[string]func(*testing.T, scene)) {
	for _, s := range subjects {
		t.Run(s.String(), func(t *testing.T) {
			plane := controlplane.Start(t, s.release)
			for name, test := range tests {
				t.Run(name, func(t *testing.T) { test(t, scene{plane, s}) })
			}
		})
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// schedulerName is what pods call the scheduler that has the extender: where it has a Policy, 1.22 calls it the default one.
func (s scene) schedulerName() string {
	if s.policy {
		return "default-scheduler"
	}
	return "asking"
}

// start starts the scheduler with these extenders; it ends with the test.
func (s scene) start(t *testing.T, extenders ...profiles.Extender) *controlplane.Process {
	t.Helper()
	p := s.NewScheduler(t, controlplane.Scheduler{Name: s.schedulerName(), Extenders: extenders, Policy: s.policy})
	p.Start()
	return p
}

// extender is one with filter and prioritize, which pods wait for.
func extender(url string) profiles.Extender {
	no := false
	return profiles.Extender{
		Name: "test", URLPrefix: url, FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 10,
		// Longer than a busy machine keeps an answer.
		HTTPTimeout: 10 * time.Second, Ignorable: &no,
	}
}
