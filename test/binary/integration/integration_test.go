//go:build linux && releases

package integration

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
)

var update = flag.Bool("update", false, "record the outcomes, for docs/conformance.md")

// chosen returns the releases in the environment variable RELEASE, or the given ones.
func chosen(otherwise ...string) []string {
	if chosen := strings.Fields(os.Getenv("RELEASE")); len(chosen) > 0 {
		return chosen
	}
	return otherwise
}

// A test that fails with the plugin in a round fails without it in a round, of this run or of an
// earlier one that was recorded.
func TestAdapterChangesNoIntegrationTestOfTheRelease(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("ROUNDS"), "3"))
	if err != nil || rounds < 1 {
		t.Fatalf("invalid ROUNDS %q: must be a positive number", os.Getenv("ROUNDS"))
	}
	for _, release := range chosen("v1.24.3", "v1.29.2", "v1.34.2", "v1.37.1") {
		t.Run(release, func(t *testing.T) {
			m := newAdapted(t, release)
			for _, name := range m.packages(t) {
				// A slash would select a package together with those below it.
				test := strings.ReplaceAll(cmp.Or(name, "scheduler"), "/", ".")
				t.Run(test, func(t *testing.T) { m.compare(t, release, name, rounds) })
			}
		})
	}
}

// compare runs the tests of a package on both sides in turn.
func (m *module) compare(t *testing.T, release, name string, rounds int) {
	dir := filepath.Join(m.source, "test/integration/scheduler", name)
	without := &side{binary: m.compile(t, tests, name, false), dir: dir, env: m.tests}
	with := &side{binary: m.compile(t, tests, name, true), dir: dir, env: m.tests, prints: started}
	for range rounds {
		without.run(t)
		with.run(t)
	}
	without.outcome.Release, without.outcome.Package, without.outcome.Rounds = release, name, rounds
	with.outcome.Release, with.outcome.Package, with.outcome.Rounds = release, name, rounds
	with.outcome.With = true
	t.Logf("without the plugin: %s; with it: %s", without, with)
	if without.ran() != with.ran() {
		t.Errorf("%d tests ran without the plugin, %d with it", without.ran(), with.ran())
	}
	all := conformance.AddTests(recorded(t), without.outcome, with.outcome)
	worse := conformance.WorseTests(all)
	for _, test := range with.outcome.Failed {
		if slices.Contains(worse, with.outcome.Name(test)) {
			t.Errorf("%s fails only with the plugin:\n%s", test, with.output[test])
		}
	}
	if *update && !t.Failed() {
		record(t, all)
	}
}

// recorded returns the outcomes of earlier runs.
func recorded(t *testing.T) []conformance.Tests {
	t.Helper()
	data, err := os.ReadFile(conformance.IntegrationFile())
	if err != nil {
		t.Fatal(err)
	}
	all, err := conformance.ReadTests(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func record(t *testing.T, all []conformance.Tests) {
	t.Helper()
	var text bytes.Buffer
	if err := conformance.WriteTests(&text, all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conformance.IntegrationFile(), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// side is the tests of a package with the plugin or without.
type side struct {
	binary, dir string
	args, env   []string
	// prints is what a run prints.
	prints  string
	outcome conformance.Tests
	// output is what the run of a test that failed printed.
	output map[string]string
}

// ended matches the line with which a test or a subtest ends.
var ended = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// timeout is for a run of all tests of a package.
const timeout = 60 * time.Minute

// run runs the tests once, in the directory of their package.
func (s *side) run(t *testing.T) {
	t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), timeout+time.Minute)
	defer cancel()
	args := append([]string{"-test.v", "-test.timeout=" + timeout.String()}, s.args...)
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput() // it fails if a test fails
	s.outcome.Seconds += time.Since(started).Seconds()
	s.keep(t, out)
	matches := ended.FindAllStringSubmatch(string(out), -1)
	if len(matches) == 0 {
		t.Fatalf("%s: %v, and no test ended:\n%s", cmd, err, tail(out))
	}
	if !bytes.Contains(out, []byte(s.prints)) {
		t.Fatalf("%s did not print %q:\n%s", cmd, s.prints, tail(out))
	}
	for _, match := range matches {
		switch name := match[2]; match[1] {
		case "PASS":
			s.outcome.Passed++
		case "SKIP":
			s.outcome.Skipped++
		default:
			s.outcome.Failed = append(s.outcome.Failed, name)
			if s.output == nil {
				s.output = map[string]string{}
			}
			s.output[name] = about(out, name)
		}
	}
}

// keep writes the output of a run to the directory in the environment variable OUTPUT.
func (s *side) keep(t *testing.T, out []byte) {
	t.Helper()
	dir := os.Getenv("OUTPUT")
	if dir == "" {
		return
	}
	name := strings.ReplaceAll(strings.Trim(t.Name()+"/"+filepath.Base(filepath.Dir(s.binary)), "/"), "/", "-")
	file, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(out); err != nil {
		t.Fatal(err)
	}
}

func (s *side) ran() int { return s.outcome.Passed + s.outcome.Skipped + len(s.outcome.Failed) }

// String returns the number of tests that ended each way in all rounds, and the time.
func (s *side) String() string {
	o := s.outcome
	return strconv.Itoa(o.Passed) + " passed, " + strconv.Itoa(len(o.Failed)) + " failed, " + strconv.Itoa(o.Skipped) +
		" skipped in " + strconv.Itoa(int(o.Seconds)) + " s"
}

// about returns what a test printed, from the line on with which it begins or, if that is not
// printed, with which it ends.
func about(out []byte, test string) string {
	at := bytes.Index(out, []byte("=== RUN   "+test+"\n"))
	if at < 0 {
		at = bytes.Index(out, []byte("--- FAIL: "+test+" ("))
	}
	const most = 4000
	return string(out[at:min(len(out), at+most)])
}

// tail returns the end of an output.
func tail(out []byte) string {
	const most = 8000
	return string(out[max(0, len(out)-most):])
}
