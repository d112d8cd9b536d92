//go:build matrix

package matrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

var update = flag.Bool("update", false, "rewrite the table in docs/releases.md")

// envReleases names the releases to test, separated by spaces. If it is empty, all releases of
// releases.txt are tested.
const envReleases = "PMK_SCHED_MATRIX"

// atOnce is how many runs of a scheduler there are at a time.
const atOnce = 4

// Each release is built, packed, and asked everything below. A release that fails does not keep the
// others from being tested. Programs in pmk-sched's cache are not compiled again, so that an
// interrupted run resumes.
func TestEveryRelease(t *testing.T) {
	known, err := documents.Read("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	releases := chosen(t)
	var rows []row
	for _, release := range releases {
		t.Run(release.String(), func(t *testing.T) {
			r := row{Release: release, Outcome: "failed"}
			defer func() {
				if !t.Failed() {
					r.Outcome = "ok"
				}
				rows = append(rows, r)
				t.Log(strings.Join(r.printed(), "  "))
			}()
			started := time.Now()
			s := built(t, release)
			if r.Built = "from the cache"; !s.Cached {
				r.Built = time.Since(started).Round(time.Second).String()
			}
			r.describe(s)
			says(t, s)
			r.Image = packed(t, s)
			r.Presets = presets(t, s)
			r.Documents, r.Losses = converted(t, s, known)
			linked(t, s)
			flags(t, s)
			gates(t, s)
			configAPIs(t, s)
			plugins(t, s)
		})
	}
	fmt.Println("\n" + table(append(header(), "built in", "outcome"), rows, row.printed))
	readme(t, rows)
}

func chosen(t *testing.T) []versions.Release {
	t.Helper()
	all := versions.Releases()
	wanted := strings.Fields(os.Getenv(envReleases))
	if len(wanted) == 0 {
		return all
	}
	t.Logf("only %s, as set in %s", strings.Join(wanted, " "), envReleases)
	return slices.DeleteFunc(all, func(r versions.Release) bool { return !slices.Contains(wanted, r.String()) })
}

func built(t *testing.T, release versions.Release) *schedulers.Scheduler {
	t.Helper()
	s, err := schedulers.Build(t.Context(), release, t.TempDir(), func(step string) func(error) {
		return func(err error) {
			if err == nil && strings.HasPrefix(step, "compile ") {
				t.Logf("%s: done", step)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// says compares the reported version with the release that was built.
func says(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	printed, err := s.Run(t.Context(), "--version")
	if err != nil || strings.TrimSpace(printed) != "Kubernetes "+s.Release.String() {
		t.Errorf("--version prints %q: %v", printed, err)
	}
}

// refused returns nil if the scheduler refuses a configuration with a message that contains one of
// the words.
func refused(ctx context.Context, s *schedulers.Scheduler, config string, words ...string) error {
	_, err := s.Read(ctx, []byte(config))
	if err == nil {
		return fmt.Errorf("it is accepted")
	}
	if !said(err, words...) {
		return fmt.Errorf("it is refused for another reason: %w", err)
	}
	return nil
}

// said reports whether a scheduler that ended badly printed one of the words.
func said(err error, words ...string) bool {
	var failure *schedulers.Failure
	return errors.As(err, &failure) &&
		slices.ContainsFunc(words, func(word string) bool { return strings.Contains(failure.Output, word) })
}
