//go:build linux && releases

package integration

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chosen returns the releases in the environment variable RELEASE, or those that are tested.
func chosen() []string {
	if chosen := strings.Fields(os.Getenv("RELEASE")); len(chosen) > 0 {
		return chosen
	}
	return []string{"v1.24.3", "v1.29.2", "v1.34.2", "v1.37.1"}
}

// A test that passes without the plugin in every round passes with it in every round.
func TestAdapterChangesNoIntegrationTestOfTheRelease(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || rounds < 1 {
		t.Fatalf("invalid ROUNDS %q: must be a positive number", os.Getenv("ROUNDS"))
	}
	for _, release := range chosen() {
		t.Run(release, func(t *testing.T) {
			m := newModule(t, release)
			for _, name := range m.packages(t) {
				t.Run(cmp.Or(name, "scheduler"), func(t *testing.T) { m.compare(t, name, rounds) })
			}
		})
	}
}

// compare runs the tests of a package on both sides in turn.
func (m *module) compare(t *testing.T, name string, rounds int) {
	without, with := newSide(m.compile(t, name, false)), newSide(m.compile(t, name, true))
	for range rounds {
		for _, s := range []*side{without, with} {
			s.run(t, filepath.Join(m.source, "test/integration/scheduler", name))
		}
	}
	t.Logf("without the plugin: %s; with it: %s", without, with)
	for _, test := range slices.Sorted(maps.Keys(without.results)) {
		before, after := without.results[test], with.results[test]
		if after.ran() != before.ran() || after[failed] > 0 && before[failed] == 0 {
			t.Errorf("%s: without the plugin %v, with it %v\n%s", test, before, after, with.output[test])
		}
	}
}

// side is the tests of a package with the plugin or without.
type side struct {
	binary  string
	results map[string]counts
	// output is what a test that failed last printed.
	output map[string]string
	took   time.Duration
}

// counts are how often a test ended with PASS, FAIL or SKIP.
type counts map[string]int

const failed = "FAIL"

func (c counts) ran() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

func newSide(binary string) *side {
	return &side{binary: binary, results: map[string]counts{}, output: map[string]string{}}
}

// ended matches the line with which a test or a subtest ends.
var ended = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// run runs the tests once, in the directory of their package.
func (s *side) run(t *testing.T, dir string) {
	t.Helper()
	started := time.Now()
	cmd := exec.CommandContext(t.Context(), s.binary, "-test.v", "-test.timeout=40m")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput() // it fails if a test fails
	s.took += time.Since(started)
	matches := ended.FindAllStringSubmatch(string(out), -1)
	if len(matches) == 0 {
		t.Fatalf("%s: %v, and no test ended:\n%s", cmd, err, tail(out))
	}
	for _, match := range matches {
		name := match[2]
		if s.results[name] == nil {
			s.results[name] = counts{}
		}
		s.results[name][match[1]]++
		if match[1] == failed {
			s.output[name] = tail(out)
		}
	}
}

// String returns the number of tests that ended each way in all rounds, and the time.
func (s *side) String() string {
	sum := counts{}
	for _, c := range s.results {
		for outcome, n := range c {
			sum[outcome] += n
		}
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped in %s", sum["PASS"], sum[failed], sum["SKIP"],
		s.took.Round(time.Second))
}

// tail returns the end of an output.
func tail(out []byte) string {
	const most = 8000
	return string(out[max(0, len(out)-most):])
}
