// Command mutants changes one place in the code at a time and runs the unit tests of the package
// and its importers. A change that no test notices is a survivor: a behaviour that no test asserts.
//
//	mutants [-n 200] [-seed 1] [-most 0.1] PACKAGE…
//
// The places are drawn from all places in the packages with the seed; packages below internal/ that
// do I/O are left out. The packages are compiled once, with -overlay and with all changes in them,
// and an environment variable switches one on. equivalent.txt lists changes without an effect and
// the reason; they are not counted.
//
// Exit status: 0, 1 if more than the given part of the mutants survived or nothing could be tested,
// 2 usage error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// errSurvivors is returned when too many mutants survived.
var errSurvivors = errors.New("too many mutants survived")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "mutants:", err)
	if problem.IsInvalid(err) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	n := flags.Int("n", 200, "number of mutants")
	seed := flags.Uint64("seed", 1, "seed of the places")
	most := flags.Float64("most", 0.1, "part of the mutants that may survive")
	if err := flags.Parse(args); err != nil {
		return problem.Invalidf("", "read the flags: %w", err)
	}
	if flags.NArg() == 0 || *n < 1 {
		return problem.Invalidf("", "name packages, such as ./versions/..., and a number of mutants above 0")
	}
	pkgs, err := readPackages(ctx, flags.Args())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built, err := compile(ctx, dir, pkgs.chosen)
	if err != nil {
		return err
	}
	var all []*mutant
	for _, p := range pkgs.chosen {
		all = append(all, p.mutants...)
	}
	harmless, err := readEquivalent()
	if err != nil {
		return err
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Fprintf(out, "%d mutants of %d packages, seed %d\n", len(all), len(pkgs.chosen), *seed)
	r := &result{tried: map[string]int{}, killed: map[string]int{}, began: time.Now()}
	for _, m := range all {
		if r.mutants == *n {
			break
		}
		if _, ok := harmless[m.key()]; ok {
			r.equivalent++
			continue
		}
		if err := r.try(ctx, pkgs, built, m, out); err != nil {
			return err
		}
	}
	return r.print(out, *most)
}

// result counts mutants; tried and killed are counted for each package.
type result struct {
	mutants       int
	tried, killed map[string]int
	equivalent    int
	began         time.Time
}

// try runs the tests of a mutant's package and then its importers' tests, until one notices it.
// Tests that do not reach it are not run.
func (r *result) try(ctx context.Context, pkgs *packages, built *tests, m *mutant, out io.Writer) error {
	var by []string
	r.mutants++
	r.tried[m.pkg.path()]++
	for _, p := range append([]*pkg{m.pkg}, pkgs.importers[m.pkg.ImportPath]...) {
		if !p.hasTests() {
			continue
		}
		program, err := built.program(ctx, p)
		if err != nil {
			return err
		}
		if !program.reached[m.id()] {
			continue
		}
		by = append(by, p.path())
		noticed, err := program.notices(ctx, m)
		if err != nil {
			return err
		}
		if noticed {
			r.killed[m.pkg.path()]++
			return nil
		}
	}
	what := "survived the tests of " + strings.Join(by, ", ")
	if len(by) == 0 {
		what = "is not reached by any test"
	}
	_, err := fmt.Fprintf(out, "%3d %s\n  %s\n", r.mutants, what, m.key())
	return err
}

func (r *result) print(out io.Writer, most float64) error {
	all, survivors := 0, 0
	fmt.Fprintln(out, "\nkilled/mutants")
	for _, path := range slices.Sorted(maps.Keys(r.tried)) {
		fmt.Fprintf(out, "%4d/%-4d %s\n", r.killed[path], r.tried[path], path)
		all, survivors = all+r.tried[path], survivors+r.tried[path]-r.killed[path]
	}
	fmt.Fprintf(out, "%d of %d mutants survived, %d without an effect were left out; %s\n",
		survivors, all, r.equivalent, time.Since(r.began).Round(time.Second))
	switch {
	case all == 0:
		return errors.New("no mutant could be tested")
	case float64(survivors) > most*float64(all):
		return fmt.Errorf("%w: %d of %d, at most %g of them may", errSurvivors, survivors, all, most)
	}
	return nil
}
