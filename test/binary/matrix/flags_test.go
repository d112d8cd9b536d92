//go:build matrix

package matrix

import (
	"regexp"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// flags compares the flags that the scheduler accepts with the flags in package versions: versions
// lists every flag in --help; the scheduler accepts every listed flag, also if --help hides it
// because it is deprecated; and it rejects flags of other releases.
func flags(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	help, err := s.Run(t.Context(), "--help")
	if err != nil {
		t.Errorf("--help: %v", err)
		return
	}
	for _, shown := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-zA-Z0-9-]+)`).FindAllStringSubmatch(help, -1) {
		if !slices.Contains(s.Rules.Flags, shown[1]) {
			t.Errorf("--help shows --%s, which versions does not name", shown[1])
		}
	}
	taken := taken(t, s, everyFlag())
	for _, name := range everyFlag() {
		if named := slices.Contains(s.Rules.Flags, name); named != taken[name] {
			t.Errorf("flag --%s: versions names it: %v; the scheduler takes it: %v", name, named, taken[name])
		}
	}
}

func everyFlag() []string {
	all := []string{"no-such-flag"}
	for _, release := range versions.Releases() {
		all = append(all, release.Rules().Flags...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// taken gives the scheduler each flag, with a value that may be wrong for it, and --version, which
// is obeyed once all flags are read.
func taken(t *testing.T, s *schedulers.Scheduler, names []string) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	takes := map[string]bool{}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error {
			_, err := s.Run(ctx, "--"+name+"=1", "--version")
			mu.Lock()
			defer mu.Unlock()
			takes[name] = !said(err, "unknown flag")
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	return takes
}
