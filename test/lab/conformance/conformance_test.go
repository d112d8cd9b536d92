//go:build linux && labs

// Package conformance runs upstream's e2e specs of scheduling with the scheduler that kubeadm
// started, with the default scheduler replaced, and with a second scheduler.
package conformance

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/versions"
)

var update = flag.Bool("update", false, "record the results, for docs/conformance.md")

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// EnvRelease is the environment variable with the releases to test, separated by blanks.
const EnvRelease = "RELEASE"

// No spec that passes with the stock scheduler fails when the default scheduler is replaced, or
// with a second scheduler.
func TestSchedulingSpecsOfTheRelease(t *testing.T) {
	releases := strings.Fields(os.Getenv(EnvRelease))
	if len(releases) == 0 {
		releases = []string{labs.Release, versions.Releases()[0].String()}
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			s := compile(t, release)
			results := s.columns(t)
			for _, r := range conformance.Worse(results) {
				t.Errorf("%s passes with the stock scheduler, but not with %s (%s): %s", r.Spec, r.Column, r.Outcome, r.Note)
			}
		})
	}
}

// columns runs the specs with each scheduler, at the same time: they wait most of it.
func (s *suite) columns(t *testing.T) (all []conformance.Result) {
	var mu sync.Mutex
	t.Run("columns", func(t *testing.T) {
		for _, column := range conformance.Columns() {
			t.Run(string(column), func(t *testing.T) {
				t.Parallel()
				n := labs.Start(t, labs.Options{
					Name: string(column), Release: s.release.String(), Layout: lab.LayoutKubeadm, Kubelets: 2,
				})
				s.load(t, n)
				prepare(t, n)
				gates := gatesOf(s.release.Minor)
				gates.open(t, n)
				use(t, n, column, gates)
				started := time.Now()
				results := s.runAll(t, n, column)
				t.Logf("%d specs in %s", len(results), time.Since(started).Round(time.Second))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, results...)
				if *update {
					record(t, results)
				}
			})
		}
	})
	return all
}

// record replaces the recorded results of a release and a column.
func record(t *testing.T, results []conformance.Result) {
	t.Helper()
	data, err := os.ReadFile(conformance.File())
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := conformance.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := conformance.Write(&text, conformance.Put(recorded, results)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conformance.File(), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
