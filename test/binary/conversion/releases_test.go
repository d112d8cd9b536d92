package conversion

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "conversion-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// built are the schedulers that the tests share, by release.
var built struct {
	mu         sync.Mutex
	dir        string
	schedulers map[versions.Release]*schedulers.Scheduler
}

// schedulerOf returns the scheduler of a release.
func schedulerOf(t testing.TB, release versions.Release) *schedulers.Scheduler {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if s, ok := built.schedulers[release]; ok {
		return s
	}
	dir, err := os.MkdirTemp(built.dir, release.String()+"-")
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedulers.Build(t.Context(), release, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if built.schedulers == nil {
		built.schedulers = map[versions.Release]*schedulers.Scheduler{}
	}
	built.schedulers[release] = s
	return s
}

// releases are the releases that are asked.
func releases(t testing.TB) []versions.Release {
	t.Helper()
	var chosen []versions.Release
	for _, release := range versions.Releases() {
		rules, err := versions.Select(release)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.Accepted) > 1 && asked(release) {
			chosen = append(chosen, release)
		}
	}
	return chosen
}
